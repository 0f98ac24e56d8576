"""Tools of the tests' Galaxies: each misbehaves unless its destination gives it ``ROOMY``.

A destination's ``UNTIL`` is a file that the tool waits for at last.

A tool's id is ``ROW__BEHAVIOUR``: so each row of a table has a tool of its own, which
``job_conf.yml`` sends where the row wants.
"""

from __future__ import annotations

from pathlib import Path
from typing import List

#: What a tool does where it has no room.
BEHAVIOURS = {
    "fine": "true",
    "sleeps": "sleep 600",
    # tail keeps in memory what has no line end; whoever feeds it ends with it, however late it is
    # killed.
    "hogs": "(head -c 120000000 /dev/zero; while printf x; do sleep 0.1; done) "
            "| tail -n 1 > /dev/null",
    "fails": "echo the tool says no >&2; exit 3",
    "runs_out": "echo MemoryError: no more >&2; exit 4",
}

_TOOL = """\
<tool id="{id}" name="{id}" version="1.0" profile="22.05">
    <command detect_errors="exit_code"><![CDATA[
if [ -z "\\$ROOMY" ]; then {behaviour}; fi;
while [ -n "\\$UNTIL" -a ! -e "\\$UNTIL" ]; do sleep 0.2; done;
echo "fine" > '$output'
    ]]></command>
    <inputs><param name="text" type="text" value="x"/></inputs>
    <outputs><data name="output" format="txt"/></outputs>
</tool>
"""

_OUT_OF_MEMORY = """\
    <command><![CDATA[
if [ -z "\\$ROOMY" ]; then {behaviour}; fi;
while [ -n "\\$UNTIL" -a ! -e "\\$UNTIL" ]; do sleep 0.2; done;
echo "fine" > '$output'
    ]]></command>
    <stdio>
        <regex match="MemoryError" source="both" level="fatal_oom" description="Out of memory"/>
        <exit_code range="1:" level="fatal"/>
    </stdio>
"""


def write_tools(home: Path, tools: List[str]) -> None:
    """Write these tools and ``tool_conf.xml`` into Galaxy's folder."""
    folder = home / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    for tool in tools:
        (folder / f"{tool}.xml").write_text(_text(tool))
    listed = "\n".join(f'    <tool file="{folder}/{tool}.xml"/>' for tool in tools)
    (home / "tool_conf.xml").write_text(
        f'<toolbox>\n<section id="tests" name="Tests">\n{listed}\n</section>\n</toolbox>\n')


def _text(tool: str) -> str:
    behaviour = tool.rpartition("__")[2]
    text = _TOOL
    if behaviour == "runs_out":
        start, end = text.index("    <command"), text.index("    <inputs>")
        text = text[:start] + _OUT_OF_MEMORY + text[end:]
    return text.format(id=tool, behaviour=BEHAVIOURS[behaviour])
