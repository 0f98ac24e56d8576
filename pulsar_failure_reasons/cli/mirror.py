"""``pulsar-failure-reasons mirror``: have Galaxy's and Pulsar's shared trees parted?"""

from __future__ import annotations

from typing import Callable, Dict, Optional

import click

from pulsar_failure_reasons import mirror
from pulsar_failure_reasons.cli.commands import Refused
from pulsar_failure_reasons.errors import MirrorError

EPILOG = """\b
Examples:
  pip download --no-deps galaxy-app pulsar-app
  pulsar-failure-reasons mirror galaxy_app-*.whl pulsar_app-*.whl
  pulsar-failure-reasons mirror ~/galaxy ~/pulsar --allow allow.toml
  pulsar-failure-reasons mirror galaxy-app pulsar-galaxy-lib --format json

\b
Exit code: 0 no difference that is not allowed, 1 there is one, 2 could not run.
"""
RENDERERS: Dict[str, Callable[[mirror.Report], str]] = {
    "text": mirror.as_text,
    "json": mirror.as_json,
    "markdown": mirror.as_markdown,
}


@click.command("mirror", epilog=EPILOG)
@click.argument("galaxy_tree", type=click.Path())
@click.argument("pulsar_tree", type=click.Path())
@click.option("--allow", type=click.Path(), metavar="ALLOW.TOML",
              help="The file of intended differences.")
@click.option("--format", "form", type=click.Choice(list(RENDERERS)), default="text")
def command(galaxy_tree: str, pulsar_tree: str, allow: Optional[str], form: str) -> None:
    """Compare Galaxy's jobs/runners/util with Pulsar's managers/util.

    Each tree is a path (a checkout, an environment's site-packages, the folder itself), a wheel, or
    the name of a package that is installed beside this one. Nothing of them is run.
    """
    try:
        allowances = mirror.read_allowances(allow) if allow is not None else []
        report = mirror.compare_trees(
            mirror.open_tree(mirror.GALAXY, galaxy_tree),
            mirror.open_tree(mirror.PULSAR, pulsar_tree),
            allowances,
        )
    except MirrorError as error:
        raise Refused(str(error)) from None
    click.echo(RENDERERS[form](report))
    click.get_current_context().exit(1 if report.not_allowed else 0)
