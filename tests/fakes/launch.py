"""Start a fake command or a job's runner: ``python launch.py COMMAND [ARGUMENT ...]``."""

import sys


def main():
    """Dispatch on the first argument, importing only what that command needs."""
    name = sys.argv[1]
    if name == "run-job":
        from fake_drm import runner

        return runner.main(sys.argv[2:])
    if name in ("sbatch", "squeue", "scontrol", "sacct", "scancel"):
        from fake_slurm import cli
    else:
        from fake_drm import cli

    return cli.main(name, sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
