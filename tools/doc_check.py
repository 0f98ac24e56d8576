"""docs/check.md: how to use `check`, and the table of its codes, from the code."""

from __future__ import annotations

from pulsar_failure_reasons.check.codes import CODES, THEMES
from pulsar_failure_reasons.check.trial import WALLTIME_OPTIONS
from tools.doc_tables import GENERATED, table

INTRODUCTION = """\
`pulsar-failure-reasons check` tells, before a job fails, whether its reason would arrive: on the
Pulsar host, and in Galaxy. It changes nothing. Each finding has a code that keeps its meaning, and
what to do. The command needs the extra `[tools]`
(`pip install 'pulsar-failure-reasons[tools]'`).

## On the Pulsar host

With the Python of Pulsar's environment, as Pulsar's user, and with the PATH of the service:

```sh
/srv/pulsar/venv/bin/pulsar-failure-reasons check /srv/pulsar/config/app.yml
```

```
ok      PFR101  pulsar-app 0.16.0, pulsar-failure-reasons 0.1.0
ok      PFR110  active in a fresh process, by /srv/pulsar/venv/lib/python3.11/site-packages/pulsar_failure_reasons.pth
ok      PFR120  _default_: type queued_slurm, from pulsar_failure_reasons.managers.slurm:SlurmQueueManager
warning PFR132  _default_: option 'status_pol_interval' is not known; is 'status_poll_interval' meant?
                -> correct its name
```

| option | |
| --- | --- |
| `--server-ini FILE` | where the service's logging is configured; default: `server.ini` beside `app.yml` |
| `--route run`, `wsgi`, `install` | how the seams come into Pulsar at a site that [forbids `.pth` files](install.md#sites-that-forbid-pth-files); the way is tried in a fresh process |
| `--submit` | send a [trial job](#a-trial-job) |
| `--format json` | all findings as one object: `findings` (code, level, about, what, do, numbers) and `counts` |

What it does: starts one or two Python processes that import Pulsar as a server does; makes each
manager with its own options, on a temporary folder, so that its own readers judge them; asks the
DRM once what every look asks, and accounting what it is asked of a job that the controller has
forgotten (a made-up id, 1), and tells how long that took and how often it will be asked; on Slurm,
`scontrol show config`; looks at folders, the logging configuration and the ledger.

Exit code: 0 no error among the findings (warnings do not count), 1 errors, 2 could not run.

## A trial job

```sh
pulsar-failure-reasons check app.yml --submit --manager _default_
```

sends a job that sleeps through each manager of ours (`--manager`: one), with its options and a short
walltime, and waits for the DRM to end it (on Slurm 1 to 2 minutes). Pulsar runs inside the command, without
its message queue and its ports, on a temporary folder beside the staging folder (`--folder`:
elsewhere; the nodes must see it). Progress goes to stderr. At the end, at the deadline (600 s) and
on Ctrl-C the job is taken out of the DRM and the folder is removed; nothing is written to the
ledger.

```
_default_: submitting a job that sleeps, to Slurm
_default_: 0 s: job 1 is queued
_default_: 1 s: job 1 is running
...
ok      PFR401  _default_: job 1 of Slurm ended after 73 s; Galaxy would be told runner_state walltime_reached: "killed after 72 s: the job's walltime limit is 60 s (Slurm job 1, node1)"
```
"""

GALAXY = """\
## In Galaxy

With the Python of Galaxy's environment (Click, which Galaxy brings, is all that the command needs
there; `[tools]` brings it too):

```sh
/srv/galaxy/venv/bin/pulsar-failure-reasons check --galaxy config/job_conf.yml --galaxy-config config/galaxy.yml
```

One of the two files is enough: `galaxy.yml` names or holds the job configuration. An old
`job_conf.xml` is read too. With another Python only the files are checked, as 26.1 reads them
(PFR502).

```
error   PFR511  runner pulsar: load: galaxy.jobs.runners.pulsar:PulsarRESTJobRunner
                -> load: pulsar_failure_reasons.galaxy_runners:PulsarRESTJobRunner
error   PFR524  p: rule 1 names 'local' as `destination`: Galaxy 26.1.2 reads `environment`
                -> environment: instead of destination:
error   PFR521  p: rule 2, 'waltime_reached': no condition is named waltime_reached
                -> did you mean walltime_reached?
```

The names that conditions may have, and whether `destination` is read, are taken from the installed
Galaxy. A condition that calls functions is not tried out. Of TPV (`tpv_config_files`,
`tpv_configs`) the files of this host are read: destinations with what they inherit, and the
`resubmit` blocks of tools, roles and users; values in braces, which TPV fills in for each job, are
not judged.
"""


def check_page() -> str:
    """Return docs/check.md."""
    lines = ["# check: will reasons arrive?", "", GENERATED, "", INTRODUCTION]
    lines += ["The walltime options are the DRMs' own:", ""]
    lines += table(
        ["DRM", "option"],
        [*([drm, f"`{option}`"] for drm, option in WALLTIME_OPTIONS.items()),
         ["htcondor", "`request_walltime: 20` (the manager's own option)"]],
    )
    lines += ["", GALAXY, "## Codes", ""]
    for prefix, heading in THEMES:
        lines += [f"### {heading.replace('`', '')}", ""]
        rows = [[code, row.level.value, row.means, row.do or ""]
                for code, row in CODES.items() if code.startswith(prefix)]
        lines += table(["code", "level", "means", "do"], rows) + [""]
    return "\n".join(lines)
