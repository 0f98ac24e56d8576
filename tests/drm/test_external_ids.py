"""Names of jobs, which of them mean the same one, and elements combined."""

from __future__ import annotations

from typing import List, Optional

import pytest

from pulsar_failure_reasons.drm.base import End, Ending, JobView, Phase
from pulsar_failure_reasons.drm.combine import combine_views
from pulsar_failure_reasons.drm.external_ids import (
    alive_ids,
    base_id,
    parse_external_id,
    same_job,
)
from pulsar_failure_reasons.errors import OutputParseError
from pulsar_failure_reasons.reason import Cause, Confidence, Evidence


@pytest.mark.parametrize(
    "text, base, tasks, component, suffix",
    [
        pytest.param("123", "123", (), None, None, id="plain"),
        pytest.param("12345_7", "12345", ((7, 7, 1),), None, None, id="slurm_task"),
        pytest.param("12345_[1-10%2]", "12345", ((1, 10, 1),), None, None, id="slurm_range"),
        pytest.param(
            "13_[5-6,8-10%3]", "13", ((5, 6, 1), (8, 10, 1)), None, None, id="slurm_ranges"
        ),
        pytest.param("13_[1-9:2]", "13", ((1, 9, 2),), None, None, id="slurm_step"),
        pytest.param("13_[1,3,5,...]", "13", (), None, None, id="slurm_cut_list"),
        pytest.param("123+1", "123", (), 1, None, id="slurm_component"),
        pytest.param("123.cluster", "123", (), None, "cluster", id="slurm_cluster"),
        pytest.param("1234[5]", "1234", ((5, 5, 1),), None, None, id="lsf_element"),
        pytest.param("4018898[]", "4018898", (), None, None, id="pbs_array"),
        pytest.param("4018898[0].server", "4018898", ((0, 0, 1),), None, "server", id="pbs"),
        pytest.param("0.host", "0", (), None, "host", id="pbs_zero"),
        pytest.param("46.1-6:1", "46", ((1, 6, 1),), None, None, id="grid_engine_tasks"),
        pytest.param("46.2", "46", ((2, 2, 1),), None, None, id="htcondor_process"),
        pytest.param("7.a-b.example.org", "7", (), None, "a-b.example.org", id="pbs_domain"),
        pytest.param("9@east", "9", (), None, "east", id="lsf_cluster"),
    ],
)
def test_ids_are_taken_apart(
    text: str, base: str, tasks: tuple, component: Optional[int], suffix: Optional[str]
) -> None:
    """Every DRM's form has its parts."""
    parsed = parse_external_id(text)
    assert (parsed.base, parsed.tasks, parsed.component, parsed.suffix) == (
        base, tasks, component, suffix
    )
    assert base_id(text) == base


@pytest.mark.parametrize(
    "text",
    [
        "", "-j", "--help", "abc", "1 2", "1;rm", "1,2", "$(x)", "1\n2", "1_", "_1", "1.", "1.-u",
        "1[", "0x10", "1_[a]", "९", "1" * 30,
    ],
)
def test_what_could_not_be_an_id_is_refused(text: str) -> None:
    """Above all nothing that a command could take for an option or for two ids."""
    with pytest.raises(OutputParseError):
        parse_external_id(text)


SAME = [
    pytest.param("13", "13", True, id="itself"),
    pytest.param("13", "14", False, id="another"),
    pytest.param("13", "131", False, id="no_prefix"),
    pytest.param("13", "13_1", True, id="task_of_it"),
    pytest.param("13", "13_[4-10%3]", True, id="remainder_of_it"),
    pytest.param("13", "13+1", True, id="component_of_it"),
    pytest.param("13_7", "13_7", True, id="task_itself"),
    pytest.param("13_7", "13_1", False, id="another_task"),
    pytest.param("13_7", "13_[4-10%3]", True, id="task_that_still_waits"),
    pytest.param("13_3", "13_[4-10%3]", False, id="task_that_does_not_wait"),
    pytest.param("13_4", "13_[1-9:2]", False, id="task_between_steps"),
    pytest.param("13_7", "13", False, id="the_whole_is_not_the_task"),
    pytest.param("13_7", "13_[1,3,...]", True, id="cut_list_may_hold_it"),
    pytest.param("13+0", "13+1", False, id="another_component"),
    pytest.param("13.a", "13", True, id="cluster_not_named"),
    pytest.param("13.a", "13.b", False, id="another_cluster"),
    pytest.param("7.pbs", "7.pbs.example.org", True, id="server_with_domain"),
    pytest.param("4018898[]", "4018898[3].server", True, id="pbs_element"),
    pytest.param("39[].host", "39[].host", True, id="pbs_array_itself"),
    pytest.param("39[3].host", "39[].host", False, id="pbs_array_is_not_the_element"),
    pytest.param("0.host", "0.host.example.org", True, id="pbs_zero"),
    pytest.param("1234", "1234[5]", True, id="lsf_element_of_it"),
    pytest.param("1234[5]", "1234[6]", False, id="another_lsf_element"),
    pytest.param("1234[1-3]@east", "1234[2]", True, id="lsf_element_in_range"),
    pytest.param("46", "46.2", True, id="grid_engine_task_of_it"),
    pytest.param("46.1-6:1", "46.4", True, id="grid_engine_task_in_range"),
    pytest.param("46.1-7:2", "46.4", True, id="grid_engine_ranges_only_have_to_meet"),
    pytest.param("46.4", "46.5-9:1", False, id="grid_engine_task_outside"),
]


@pytest.mark.parametrize("wanted, seen, same", SAME)
def test_same_job(wanted: str, seen: str, same: bool) -> None:
    """An element is the job it belongs to; what one of two does not name is no difference."""
    assert same_job(wanted, seen) is same


def _view(
    external_id: str,
    phase: Phase = Phase.ENDED,
    ending: Ending = Ending.WELL,
    cause: Optional[Cause] = None,
    submitted_at: str = "T1",
    restarts: int = 0,
) -> JobView:
    return JobView(
        external_id=external_id,
        job_state="X",
        phase=phase,
        confidence=Confidence.CONTROLLER,
        end=End(ending, cause) if phase is Phase.ENDED else None,
        job_name="name",
        submitted_at=submitted_at,
        restarts=restarts,
        evidence=(Evidence("squeue", "State", "X"),),
    )


@pytest.mark.parametrize(
    "phases, expected",
    [
        ([Phase.ENDED, Phase.RUNNING], Phase.RUNNING),
        ([Phase.QUEUED, Phase.RUNNING], Phase.RUNNING),
        ([Phase.STUCK, Phase.QUEUED], Phase.QUEUED),
        ([Phase.ENDED, Phase.STUCK], Phase.STUCK),
        ([Phase.ENDED, Phase.UNKNOWN], Phase.UNKNOWN),
        ([Phase.ENDED, Phase.ENDING], Phase.ENDING),
        ([Phase.ENDED, Phase.ENDED], Phase.ENDED),
    ],
)
def test_combined_job_lives_as_long_as_an_element(phases: List[Phase], expected: Phase) -> None:
    """Only when all elements have ended has the job."""
    views = [_view(f"13_{n}", phase) for n, phase in enumerate(phases)]
    assert combine_views(views).phase is expected
    assert combine_views(views[::-1]).phase is expected


@pytest.mark.parametrize(
    "worse, better",
    [
        (Ending.LIMIT, Ending.INFRASTRUCTURE),
        (Ending.INFRASTRUCTURE, Ending.CANCELLED),
        (Ending.CANCELLED, Ending.BADLY),
        (Ending.BADLY, Ending.WELL),
    ],
)
def test_the_worst_end_decides(worse: Ending, better: Ending) -> None:
    """Of ended elements the worst speaks, and the evidence names it."""
    combined = combine_views([_view("13_1", ending=better), _view("13_2", ending=worse)])
    assert combined.end is not None and combined.end.ending is worse
    assert combined.external_id == "13"
    assert combined.evidence[0] == Evidence("squeue", "element", "13_2")


def test_combined_submission_does_not_change_with_the_speaker() -> None:
    """A requeued element must not make the job look like another one under a reused id."""
    first, requeued = _view("13_1"), _view("13_2", submitted_at="T2", restarts=1)
    for views in ([first, requeued], [requeued, first]):
        assert combine_views(views).submitted_at == "T1"
        assert combine_views(views).restarts == 0


def test_one_view_stays_as_it_is() -> None:
    """A job without elements keeps its id and evidence."""
    assert combine_views([_view("13_1")]) == _view("13_1")
    with pytest.raises(ValueError):
        combine_views([])


def test_alive_ids() -> None:
    """The ids to cancel are those of the job's elements that have not ended."""
    views = [_view("13_1"), _view("13_[2-3]", Phase.QUEUED), _view("14", Phase.RUNNING)]
    assert alive_ids("13", views) == ["13_[2-3]"]
