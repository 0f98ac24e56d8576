"""A WSGI application factory for sites that forbid `.pth` files.

In `server.ini`: `paste.app_factory = pulsar_failure_reasons.wsgi:app_factory`, for servers that
read it (`gunicorn --paste`). Pulsar's own `pulsar-serve` does not: there, use
`pulsar-failure-reasons run pulsar-serve`.
"""

from __future__ import annotations

from typing import Any, Dict

from pulsar_failure_reasons import pulsar_hooks


def app_factory(global_conf: Dict[str, str], **local_conf: Any) -> Any:
    """Return Pulsar's own WSGI application, made with our seams in place."""
    pulsar_hooks.install()
    from pulsar.web import wsgi

    return wsgi.app_factory(global_conf, **local_conf)
