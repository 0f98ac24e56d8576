"""``pulsar-failure-reasons report``: what the failure ledger tells."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Any, List, Optional

import click

from pulsar_failure_reasons.app_config import AppConfig, load_app_config
from pulsar_failure_reasons.cli.commands import Refused
from pulsar_failure_reasons.errors import (
    ConfigurationError,
    FailureReasonsError,
    LedgerNotMadeError,
)
from pulsar_failure_reasons.ledger.settings import (
    LedgerSettings,
    NoLedger,
    as_url,
    ledger_settings,
    shown,
)

FORMATS = ("table", "json", "csv", "prometheus", "influx", "tpv", "html")
#: For a snippet that is merged by hand all tools count, not only the worst.
TPV_TOOLS = 1000
EPILOG = """\b
Examples:
  pulsar-failure-reasons report --app /etc/pulsar/app.yml --since 7d --by cause,tool
  pulsar-failure-reasons report --ledger failure-ledger.sqlite --by day,cause --format csv
  pulsar-failure-reasons report --app app.yml --since 90d --format html --output report.html
  pulsar-failure-reasons report --app app.yml --since 90d --format tpv
  pulsar-failure-reasons report --ledger postgresql+psycopg://host/pulsar --format prometheus

\b
--by takes: cause, fault, tool, node, manager, and one of hour, day, week, month.
By node, rates are not known: the ledger does not hold where jobs ran that ended well.
Exit code: 0 with a report (also an empty one, as of a server on which no job has ended yet),
2 where there is no ledger to read.
"""


@click.command("report", epilog=EPILOG)
@click.option("--app", metavar="APP.YML", help="The ledger of this Pulsar server.")
@click.option("--ledger", metavar="PATH|URL", help="The ledger itself, as in failure_ledger.")
@click.option("--since", default="30d", show_default=True, metavar="SPAN|DATE|all",
              help="Begin of the period: 12h, 7d, 2026-01-31, all.")
@click.option("--until", metavar="SPAN|DATE", help="Its end; default: now.")
@click.option("--by", default="cause", show_default=True, metavar="NAME,...",
              help="What to group by, such as cause,tool.")
@click.option("--top", type=click.IntRange(1, 100_000), metavar="N",
              help="Rows of the worst nodes and of limits; default: 20.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table")
@click.option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
def command(app: Optional[str], ledger: Optional[str], output: Optional[str], **asked: Any) -> None:
    """Count failures by cause, tool, node, manager and time, from the failure ledger.

    With the worst nodes, and the tools whose limits are too low with what their jobs used.
    """
    try:
        server = _server(app, ledger)
        url = _url_of_server(server) if server else str(as_url(str(ledger), "."))
        text = _report(url, server, **asked)
    except FailureReasonsError as error:
        raise Refused(str(error)) from None
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        _write(output, text)
    except OSError as error:
        raise Refused(f"{output} cannot be written: {error.strerror or error}") from None
    click.echo(f"written: {output}", err=True)


def _write(path: str, text: str) -> None:
    """Write a file so that nobody reads half of it (Prometheus' textfile collector would)."""
    if os.path.exists(path) and not os.path.isfile(path):
        whole = path  # a device or a pipe
    else:
        whole = f"{path}.new"
    with open(whole, "w", encoding="utf-8") as stream:
        stream.write(text)
    if whole != path:
        os.replace(whole, path)


def _server(app: Optional[str], ledger: Optional[str]) -> Optional[AppConfig]:
    """Return the server whose ledger was named, None where the ledger itself was.

    Raises:
        ConfigurationError: none was named, or both ways, or app.yml cannot be read.
    """
    if (app is None) == (ledger is None):
        raise ConfigurationError("name the ledger: --app APP.YML, or --ledger PATH or URL")
    return None if app is None else load_app_config(app)


def _url_of_server(config: AppConfig) -> str:
    """Return the URL of a server's ledger.

    Raises:
        ConfigurationError: it has none, or several.
    """
    found: List[str] = []
    why_not = "no manager keeps one"
    for manager in config.managers:
        settings = ledger_settings(manager.name, manager.options, config.persistence_directory)
        if isinstance(settings, LedgerSettings):
            if settings.url not in found:
                found.append(settings.url)
        elif isinstance(settings, NoLedger):
            why_not = settings.why
    if not found:
        raise ConfigurationError(f"{config.path} has no failure ledger: {why_not}")
    if len(found) > 1:
        places = ", ".join(map(shown, found))
        raise ConfigurationError(f"{config.path} has several ledgers, name one with --ledger: "
                                 f"{places}")
    return found[0]


def _report(
    url: str, server: Optional[AppConfig], since: str, until: Optional[str], by: str,
    top: Optional[int], form: str,
) -> str:
    # Behind the options, so that --help needs no SQLAlchemy.
    from pulsar_failure_reasons.ledger.database import EmptyLedger, LedgerDatabase
    from pulsar_failure_reasons.report.build import TOP, build_report, parse_dimensions
    from pulsar_failure_reasons.report.period import parse_period

    now = time.time()
    dimensions, period = parse_dimensions(by), parse_period(since, until, now)
    database = LedgerDatabase(url, read_only=True)
    rows = top or (TPV_TOOLS if form == "tpv" else TOP)
    try:
        report = build_report(database, period, dimensions, rows)
        nothing = (f"no job ended in this period ({period}) according to {database.shown}; "
                   "--since all shows what there is")
    except LedgerNotMadeError:
        if server is None or not _will_make_one(server):
            raise
        # What app.yml names is no slip of the hand, and cron runs this on a new server too.
        database = EmptyLedger(url)
        report = build_report(database, period, dimensions, rows)
        nothing = f"no job has ended yet: {database.shown} is made when the first one does"
    if not report.ends:
        click.echo(f"pulsar-failure-reasons report: {nothing}", err=True)
    return _render(report, database, form, now)


def _will_make_one(server: AppConfig) -> bool:
    """Tell whether a server has a manager that keeps a ledger."""
    from pulsar_failure_reasons.managers.reconciling import MANAGERS

    return any(manager.type in MANAGERS for manager in server.managers)


def _render(report: Any, database: Any, form: str, now: float) -> str:
    if form == "html":
        from pulsar_failure_reasons.report.as_html import render_html

        return render_html(report, database)
    if form == "tpv":
        from pulsar_failure_reasons.report.as_tpv import render_tpv

        return render_tpv(report)
    if form == "table":
        from pulsar_failure_reasons.report.as_text import WIDE, render_text

        if not sys.stdout.isatty():
            return render_text(report, WIDE)
        return render_text(report, shutil.get_terminal_size().columns, color=True)
    from pulsar_failure_reasons.report import as_data

    if form == "influx":
        return as_data.render_influx(report, now)
    return {
        "json": as_data.render_json,
        "csv": as_data.render_csv,
        "prometheus": as_data.render_prometheus,
    }[form](report)
