"""`pulsar-failure-reasons check`: will reasons arrive from this host, will Galaxy act on them?

Nothing is changed. `--submit` sends a job, and cleans up after itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from typing import Any, Dict, Iterator, List, Optional

import click

from pulsar_failure_reasons.check.findings import Finding, count_by_level, exit_code_of
from pulsar_failure_reasons.check.run import crashed, run_checks
from pulsar_failure_reasons.cli.commands import Refused
from pulsar_failure_reasons.errors import ConfigurationError

#: As in pulsar_failure_reasons.check.trial, which imports more than --help needs.
DEADLINE_S = 600.0
EXAMPLES = """\b
Examples:
  pulsar-failure-reasons check /srv/pulsar/config/app.yml
  sudo -u pulsar pulsar-failure-reasons check app.yml --submit
  pulsar-failure-reasons check app.yml --route run --format json
  pulsar-failure-reasons check --galaxy config/job_conf.yml --galaxy-config config/galaxy.yml

\b
Run it with the Python of Pulsar's environment, as Pulsar's user (and --galaxy with Galaxy's).
The codes are explained in docs/check.md.

\b
Exit code: 0 no error among the findings, 1 errors, 2 could not run.
"""
COLOURS = {"ok": "green", "info": "blue", "warning": "yellow", "error": "red"}


@click.command(epilog=EXAMPLES)
@click.argument("app_yml", required=False, metavar="[APP_YML]")
@click.option("--server-ini", metavar="FILE", help="Default: server.ini beside APP_YML.")
@click.option(
    "--route", type=click.Choice(["auto", "run", "wsgi", "install"]), default="auto",
    help="How the seams come into Pulsar, where .pth files are forbidden.",
)
@click.option("--submit", is_flag=True, help="Send a tiny job that exceeds its walltime.")
@click.option("--manager", metavar="NAME", help="Which manager sends it. Default: each of ours.")
@click.option(
    "--deadline", type=click.FloatRange(min=1), default=DEADLINE_S, show_default=True,
    metavar="SECONDS", help="How long such a job may take.",
)
@click.option(
    "--folder", metavar="FOLDER",
    help="Where its temporary folder is made. Default: beside the staging folder.",
)
@click.option("--galaxy", metavar="JOB_CONF", help="Check Galaxy's side: its job_conf.yml.")
@click.option("--galaxy-config", metavar="FILE", help="Galaxy's galaxy.yml.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True)
def command(
    app_yml: Optional[str], server_ini: Optional[str], route: str, submit: bool,
    manager: Optional[str], deadline: float, folder: Optional[str], galaxy: Optional[str],
    galaxy_config: Optional[str], form: str,
) -> None:
    """Will reasons arrive from this host, and will Galaxy act on them?"""
    if app_yml is None and galaxy is None and galaxy_config is None:
        raise Refused("name Pulsar's app.yml, or Galaxy's job_conf.yml with --galaxy")
    if submit and app_yml is None:
        raise Refused("--submit needs Pulsar's app.yml")
    found: List[Finding] = []
    try:
        for finding in _findings(
            app_yml, server_ini, route, galaxy, galaxy_config,
            {"manager": manager, "deadline": deadline, "folder": folder} if submit else None,
        ):
            found.append(finding)
            if form == "text":
                _print(finding)
    except ConfigurationError as error:
        raise Refused(str(error)) from None
    if form == "json":
        click.echo(json.dumps(_as_json(found), indent=2))
    else:
        click.echo(_summary(found))
    raise SystemExit(exit_code_of(found))


def _findings(
    app_yml: Optional[str], server_ini: Optional[str], route: str, galaxy: Optional[str],
    galaxy_config: Optional[str], trial: Optional[Dict[str, Any]],
) -> Iterator[Finding]:
    if app_yml is not None:
        yield from _guarded(app_yml, _of_pulsar(app_yml, server_ini, route, trial))
    if galaxy is not None or galaxy_config is not None:
        path = str(galaxy or galaxy_config)
        yield from _guarded(path, _of_galaxy(galaxy, galaxy_config))


def _guarded(path: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the findings; a mistake of ours in reading the files is one too."""
    try:
        yield from findings
    except (ConfigurationError, click.ClickException):
        raise
    except Exception as error:
        yield crashed(path, error)


def _of_galaxy(galaxy: Optional[str], galaxy_config: Optional[str]) -> Iterator[Finding]:
    from pulsar_failure_reasons.check.galaxy_checks import CHECKS
    from pulsar_failure_reasons.check.galaxy_site import describe_galaxy

    yield from run_checks(CHECKS, describe_galaxy(galaxy, galaxy_config))


def _of_pulsar(
    app_yml: str, server_ini: Optional[str], route: str, trial: Optional[Dict[str, Any]]
) -> Iterator[Finding]:
    from pulsar_failure_reasons.app_config import load_app_config
    from pulsar_failure_reasons.check.app_checks import CHECKS
    from pulsar_failure_reasons.check.site import describe_site

    config = load_app_config(app_yml)
    names = [configured.name for configured in config.managers]
    if trial and trial["manager"] not in (None, *names):
        raise Refused(f"{app_yml} has no manager {trial['manager']!r}; it has: {', '.join(names)}")
    site = describe_site(config, server_ini or _beside(app_yml), route)
    yield from run_checks(CHECKS, site)
    if trial is not None:
        yield from run_checks([("the trial job", lambda one: _trials(one, trial))], site)


def _beside(app_yml: str) -> Optional[str]:
    path = os.path.join(os.path.dirname(os.path.abspath(app_yml)), "server.ini")
    return path if os.path.isfile(path) else None


def _trials(site: Any, asked: Dict[str, Any]) -> Iterator[Finding]:
    from pulsar_failure_reasons.check.trial import Trial

    for made in site.usable():
        if asked["manager"] in (None, made.name):
            beside = os.path.dirname(made.configured.staging_directory)
            with _stop_on_signals() as stop:
                trial = Trial(
                    made, asked["folder"] or beside, asked["deadline"],
                    lambda line: click.echo(f"{made.name}: {line}", err=True), stop,
                )
                yield from trial.run()
            if stop.is_set():
                return


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """Give an event that the first signal sets; the second one interrupts."""
    stop = threading.Event()

    def on_signal(*_: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        click.echo("cleaning up; once more interrupts that too", err=True)

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ---- showing --------------------------------------------------------------------------------


def _print(finding: Finding) -> None:
    level = click.style(f"{finding.level.value:<8}", fg=COLOURS[finding.level.value])
    about = f"{finding.about}: " if finding.about else ""
    click.echo(f"{level}{finding.code}  {about}{finding.what}")
    if finding.advice:
        click.echo(f"{'':<16}-> {finding.advice}")


def _as_json(found: List[Finding]) -> Dict[str, Any]:
    return {
        "findings": [finding.to_dict() for finding in found],
        "counts": count_by_level(found),
    }


def _summary(found: List[Finding]) -> str:
    counts = count_by_level(found)
    return ", ".join(f"{counts[level]} {level}" for level in ("error", "warning", "info", "ok"))
