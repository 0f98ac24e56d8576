"""The code behind the one line of `pulsar_failure_reasons.pth`; run me to write that line.

A `.pth` file may hold one-line statements only, so this readable form is kept here and a test
compares the two.
"""

from __future__ import annotations

import pathlib

# Runs in every Python process of the environment: it imports nothing and defines one class, in a
# namespace of its own, since `site` executes the line in its own.
STUB = """\
class PulsarFailureReasonsFinder:
    def find_spec(self, name, path=None, target=None):
        if not (name + '.').startswith('pulsar.') and name != 'galaxy.jobs.runners.pulsar': \
return None
        try:
            from pulsar_failure_reasons._import_hook import activate
            return activate().find_spec(name, path, target)
        except Exception as e:
            self in sys.meta_path and sys.meta_path.remove(self)
            import logging
            logging.getLogger('pulsar.failure_reasons').warning('pulsar-failure-reasons is not \
active (its .pth file is there, the package cannot be imported): %s', e)
if not any(type(f).__name__ == 'PulsarFailureReasonsFinder' for f in sys.meta_path):
    sys.meta_path.insert(0, PulsarFailureReasonsFinder())
"""

COMMENT = """\
# pulsar-failure-reasons: waits for the package `pulsar` to be imported (in Galaxy, for the module
# of its Pulsar runners), and does nothing else.
# The readable form is in pulsar_failure_reasons/_import_hook.py.
"""

PTH = pathlib.Path(__file__).resolve().parent.parent / "pulsar_failure_reasons.pth"


def line() -> str:
    """Return the whole text of the `.pth` file."""
    return COMMENT + "import sys; exec(%r, {'sys': sys})\n" % STUB


if __name__ == "__main__":
    PTH.write_text(line())
