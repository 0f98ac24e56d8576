"""Stock runner classes with ours in place, for sites whose `load:` has to name stock's.

Asked for by ``PULSAR_FAILURE_REASONS_GALAXY=1`` in the environment of Galaxy's handlers. Then the
line ``load: galaxy.jobs.runners.pulsar:PulsarRESTJobRunner`` gives what
``load: pulsar_failure_reasons.galaxy_runners:PulsarRESTJobRunner`` gives.
"""

from __future__ import annotations

import logging
from typing import Any, Tuple

from ..switch import GALAXY_VARIABLE, galaxy_opted_in

log = logging.getLogger("galaxy.pulsar_failure_reasons.opt_in")


def with_mixin(stock_class: Any, mixin: type) -> Tuple[Any, ...]:
    """Return the bases of our class for a stock class: one that has the mixin is enough."""
    return (stock_class,) if issubclass(stock_class, mixin) else (mixin, stock_class)


def apply_if_asked(stock_base: Any, mixin: type) -> bool:
    """Put the mixin into all stock runner classes if the operator asked for it; tell if done."""
    if not galaxy_opted_in():
        return False
    for stock_class in stock_base.__subclasses__():
        if not issubclass(stock_class, mixin):
            _insert(stock_class, stock_base, mixin)
    log.info("%s is set: Galaxy's own Pulsar runners resubmit by reason", GALAXY_VARIABLE)
    return True


def _insert(stock_class: Any, stock_base: Any, mixin: type) -> None:
    """Put the mixin between a stock runner class and the base that they all have."""
    bases = tuple(
        base for stock in stock_class.__bases__
        for base in ((mixin, stock) if stock is stock_base else (stock,))
    )
    stock_class.__bases__ = bases
