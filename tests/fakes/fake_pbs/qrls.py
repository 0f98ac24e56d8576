"""``qrls``: releases held jobs."""

from fake_drm import transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_pbs import changes


def main(store, argv):
    """Release; returns the exit code."""
    usage = refuse("usage: qrls [-h hold_list] job_identifier...\n", 2)
    ids = parse_anywhere(argv, {"h", "t"}, set(), usage)[1]

    def act(record, now):
        record["extra"].update(hold_types=None, comment="")
        transitions.release(record)
        return None

    return changes.each(store, "qrls", ids, act)
