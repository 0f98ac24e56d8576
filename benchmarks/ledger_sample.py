"""A ledger as a site of some hundred tools and nodes fills it, for measurements and a look."""

from __future__ import annotations

import random
from typing import Iterator, Optional

from pulsar_failure_reasons.ledger.entry import Entry
from pulsar_failure_reasons.reason import Cause, Confidence, Evidence, FailureReason

GIB = 2**30
NAMES = (
    "hisat2", "bwa_mem2", "trinity", "kraken2", "spades", "fastp", "star", "samtools_sort",
    "deepvariant", "unicycler", "bowtie2", "salmon", "macs2_callpeak", "blastn", "interproscan",
)
#: What a failure is of, and how often in a hundred.
CAUSES = (
    (Cause.MEMORY, 38), (Cause.WALLTIME, 24), (Cause.NODE_FAILURE, 9), (Cause.CANCELLED, 8),
    (Cause.PREEMPTED, 7), (Cause.LOST, 5), (Cause.LAUNCH_ERROR, 4), (Cause.DISK, 3),
    (Cause.UNKNOWN, 2),
)


def sample_entries(
    count: int, *, until: int, days: int = 30, tools: int = 200, nodes: int = 120,
    failing: float = 1.0, seed: int = 7,
) -> Iterator[Entry]:
    """Yield ends in the order of time, the share ``failing`` of them with a reason."""
    chance = random.Random(seed)
    length_s = days * 86400
    causes, weights = zip(*CAUSES)
    for number in range(count):
        moment = until - length_s + int(length_s * (number + 1) / count) - 1
        tool = min(int(chance.expovariate(1) * tools / 5), tools - 1)
        cause = chance.choices(causes, weights)[0] if chance.random() < failing else None
        yield Entry(
            manager="main" if number % 4 else "highmem",
            job_id=str(number + 1),
            external_id=str(500_000 + number),
            tool_id=tool_id(tool),
            ended_at=moment,
            reason=cause and _reason(cause, tool, number, nodes, chance),
        )


def tool_id(number: int) -> str:
    """Return the id of a tool as a tool shed gives them."""
    name = NAMES[number % len(NAMES)] + ("" if number < len(NAMES) else f"_{number}")
    return f"toolshed.g2.bx.psu.edu/repos/iuc/{name}/{name}/2.{number % 7}.1+galaxy{number % 3}"


def _reason(
    cause: Cause, tool: int, number: int, nodes: int, chance: random.Random
) -> FailureReason:
    memory = (4 << tool % 4) * GIB
    walltime_s = 3600 * (1 + tool % 12)
    # A few nodes are bad, as in every cluster.
    infrastructure = cause in (Cause.NODE_FAILURE, Cause.PREEMPTED, Cause.LOST)
    bad = infrastructure and chance.random() < 0.5
    node: Optional[str] = f"node{chance.choice((7, 19, 41)) if bad else number % nodes + 1:03d}"
    full = cause is Cause.WALLTIME
    return FailureReason(
        cause=cause,
        message=f"Slurm ended the job for {cause.value}.",
        confidence=Confidence.CONTROLLER,
        drm="slurm",
        external_id=str(500_000 + number),
        node=node,
        requested={"memory_bytes": memory, "walltime_s": walltime_s},
        used={
            "memory_bytes": int(memory * chance.uniform(0.7, 1.0)),
            "walltime_s": walltime_s if full else walltime_s * chance.random(),
        },
        evidence=(Evidence("scontrol", "JobState", cause.value.upper()),),
    )
