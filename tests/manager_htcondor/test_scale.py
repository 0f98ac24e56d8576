"""Many jobs: what a look costs in queries, reads and descriptors, whatever their number."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, List

import pytest

from pulsar_failure_reasons.managers import htcondor_log, htcondor_source

from .conftest import MakePulsar
from .harness import Pool, add_running_jobs, control, open_files

COUNT = 1000


@pytest.mark.slow
def test_a_look_at_a_thousand_jobs(
    make_pulsar: MakePulsar, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query; no log is read that did not change, no view made anew, no descriptor kept."""
    ids = [f"job{number}" for number in range(COUNT)]
    clusters = add_running_jobs(pool.state, tmp_path, ids)
    pulsar = make_pulsar(status_poll_interval=3600)
    for job_id in ids:
        assert pulsar.manager().get_status(job_id) == "running"
    observer = pulsar.observer()
    observer.stop(60)
    observer.look()
    source, asked, read, made = observer.source, [], [], []
    ask, view_of, read_all = source._ask, htcondor_source.view_of, htcondor_log._read_all

    def counted_ask(what: str, **request: Any) -> Any:
        asked.append(what)
        return ask(what, **request)

    def counted_view(*args: Any, **more: Any) -> Any:
        made.append(args)
        return view_of(*args, **more)

    def counted_read(*args: Any) -> Any:
        read.append(args)
        return read_all(*args)

    monkeypatch.setattr(source, "_ask", counted_ask)
    monkeypatch.setattr(htcondor_source, "view_of", counted_view)
    monkeypatch.setattr(htcondor_log, "_read_all", counted_read)
    folders = (tmp_path / "staging", tmp_path / "logs")
    observer.look()
    assert (asked, len(made), len(read), open_files(*folders)) == (["query"], 0, 0, 0)
    ended: List[int] = clusters[:50]
    control.end_injected(str(pool.state), ended)
    for job_id in ids[:50]:
        (pulsar.directory(job_id) / "return_code").write_text("0")
    asked.clear()
    observer.look()
    # The logs of those that have left tell how they ended: nobody has to be asked.
    assert (asked, len(read), open_files(*folders)) == (["query"], 50, 0)
    statuses = [pulsar.manager().get_status(job_id) for job_id in ids]
    assert statuses == ["complete"] * 50 + ["running"] * (COUNT - 50)
    for cluster in clusters[50:80]:
        os.unlink(tmp_path / "staging" / f"job{cluster - clusters[0]}" / "job_condor.log")
    control.end_injected(str(pool.state), clusters[50:80], exit_code=3)
    asked.clear()
    observer.look()
    assert asked == ["query", "query", "history"]
    assert observer.counters.failed_passes == 0
