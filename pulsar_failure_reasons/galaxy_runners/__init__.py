"""Galaxy's Pulsar runners that resubmit by reason, under Galaxy's own names.

In job_conf.yml: ``load: pulsar_failure_reasons.galaxy_runners:PulsarRESTJobRunner``. Everything is
in :mod:`.mixin`; what a class is for, Galaxy's class of the same name says.
"""

from __future__ import annotations

from typing import Any

from galaxy.jobs.runners import pulsar as _stock

from .mixin import FailureReasonsMixin
from .opt_in import apply_if_asked, with_mixin

# First: a stock class that has the mixin in place is the base of ours.
apply_if_asked(_stock.PulsarJobRunner, FailureReasonsMixin)


def _bases(name: str) -> Any:
    return with_mixin(getattr(_stock, name), FailureReasonsMixin)


class PulsarRESTJobRunner(*_bases("PulsarRESTJobRunner")):  # type: ignore[misc]
    """Over REST."""


class PulsarMQJobRunner(*_bases("PulsarMQJobRunner")):  # type: ignore[misc]
    """Over AMQP or a relay."""


class PulsarLegacyJobRunner(*_bases("PulsarLegacyJobRunner")):  # type: ignore[misc]
    """As the old LWR runner."""


class PulsarEmbeddedJobRunner(*_bases("PulsarEmbeddedJobRunner")):  # type: ignore[misc]
    """A Pulsar inside Galaxy."""


class PulsarEmbeddedMQJobRunner(*_bases("PulsarEmbeddedMQJobRunner")):  # type: ignore[misc]
    """A Pulsar inside Galaxy, over AMQP."""


class PulsarCoexecutionJobRunner(*_bases("PulsarCoexecutionJobRunner")):  # type: ignore[misc]
    """A Pulsar beside each job."""


class PulsarKubernetesJobRunner(*_bases("PulsarKubernetesJobRunner")):  # type: ignore[misc]
    """A Pulsar beside each job, on Kubernetes."""


class PulsarTesJobRunner(*_bases("PulsarTesJobRunner")):  # type: ignore[misc]
    """A Pulsar beside each job, on a GA4GH TES."""


class PulsarGcpBatchJobRunner(*_bases("PulsarGcpBatchJobRunner")):  # type: ignore[misc]
    """A Pulsar beside each job, on Google Cloud Batch."""
