"""A tool that ended by itself, and badly: Galaxy's resubmit handler is asked, as other runners do.

Stock Pulsar runners never ask it. Where it is not to be asked, or anything goes wrong on the way,
the job is finished as by stock.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import Any, Iterator

from galaxy import model
from galaxy.tool_util.output_checker import DETECTED_JOB_STATE

from .database import one_line, until_database_answers
from .destination import keep_reason
from .payload import payload_of

log = logging.getLogger("galaxy.pulsar_failure_reasons.finish")

_States = model.Job.states
#: A job that somebody ended, or that is over, is not run again.
NOT_RUN_AGAIN = frozenset({
    _States.OK, _States.ERROR, _States.DELETED, _States.DELETING, _States.STOPPED, _States.STOPPING,
})


@contextlib.contextmanager
def handler_asked_first(runner: Any, job_state: Any) -> Iterator[None]:
    """In the block, ``finish`` of this job's wrapper asks the handler before it does its work."""
    wrapper = job_state.job_wrapper
    stock_finish = wrapper.finish

    @functools.wraps(stock_finish)
    def finish(tool_stdout: Any, tool_stderr: Any, *args: Any, **kwargs: Any) -> Any:
        exit_code = args[0] if args else kwargs.get("tool_exit_code")
        ask = functools.partial(
            _resubmitted, runner, job_state, tool_stdout, tool_stderr, exit_code, kwargs
        )
        try:
            if until_database_answers(runner, "(%s) the end of the tool" % wrapper.job_id, ask):
                return None
        except Exception as error:
            log.exception("(%s) the resubmit rules were not asked: %s",
                          wrapper.job_id, one_line(error))
        return stock_finish(tool_stdout, tool_stderr, *args, **kwargs)

    wrapper.finish = finish
    try:
        yield
    finally:
        del wrapper.finish


def may_run_again(runner: Any, job_state: Any) -> bool:
    """Tell whether nobody has ended this job."""
    if payload_of(job_state).get("status") == "cancelled":
        return False
    job = job_state.job_wrapper.get_job()
    runner.sa_session.refresh(job)
    return job.state not in NOT_RUN_AGAIN


def _resubmitted(
    runner: Any, job_state: Any, tool_stdout: Any, tool_stderr: Any, exit_code: Any, kwargs: Any
) -> bool:
    """Tell whether the tool failed and the job was resubmitted for it."""
    if not may_run_again(runner, job_state):
        return False
    wrapper = job_state.job_wrapper
    job = wrapper.get_job()
    detected = wrapper.check_tool_output(
        tool_stdout, tool_stderr, tool_exit_code=exit_code, job=job,
        job_stdout=kwargs.get("job_stdout"), job_stderr=kwargs.get("job_stderr"),
    )
    if detected == DETECTED_JOB_STATE.OK:
        return False
    runner.sa_session.add(job)
    runner.sa_session.commit()
    out_of_memory = detected == DETECTED_JOB_STATE.OUT_OF_MEMORY_ERROR
    job_state.runner_state = (
        job_state.runner_states.MEMORY_LIMIT_REACHED if out_of_memory
        else job_state.runner_states.TOOL_DETECT_ERROR
    )
    # The tool's own failure: what an earlier attempt died of is no reason for it.
    keep_reason(runner, job_state, None)
    runner._handle_runner_state("failure", job_state)
    return bool(job_state.runner_state_handled)
