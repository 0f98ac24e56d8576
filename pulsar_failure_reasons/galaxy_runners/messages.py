"""Messages that could not be handled come again.

Pulsar's client acknowledges a message whatever its handling raises, so a job's end that comes while
the database is away, and Galaxy is stopped, is lost with stock.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, List

from .database import DATABASE_AWAY, one_line

log = logging.getLogger("galaxy.pulsar_failure_reasons.messages")


def requeue_unhandled(client_manager: Any) -> None:
    """Have AMQP messages go back to their queue where the database kept them from being handled."""
    stock = getattr(client_manager, "callback_wrapper", None)
    if stock is None or not hasattr(client_manager, "exchange"):
        return  # no AMQP: a relay keeps its own account of what was read

    @functools.wraps(stock)
    def callback_wrapper(callback: Any, body: Any, message: Any) -> None:
        went_back: List[bool] = []

        def handle(full_status: Any) -> None:
            try:
                callback(full_status)
            except DATABASE_AWAY as error:
                log.warning("a message goes back to its queue: %s", one_line(error))
                message.requeue()
                went_back.append(True)
                raise

        try:
            stock(handle, body, message)
        except Exception:
            # Stock acknowledges at the end, and kombu refuses that for one that went back.
            if not went_back:
                raise

    client_manager.callback_wrapper = callback_wrapper
