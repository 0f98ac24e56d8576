"""A real Galaxy (``UniverseApplication``) in this process, told what to do by lines of JSON.

Runs in Galaxy's own environment: ``python -m tests.galaxy.inside CONFIG.json``. One request per
line of standard input, one answer per line of standard output; the log goes to standard error.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any, Dict, Optional

NO_METADATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "no_metadata")
USER = "harness@example.org"


class Inside:
    """Galaxy, and the requests it answers: every other public method is one."""

    def __init__(self, config: Dict[str, Any]) -> None:
        from galaxy.app import UniverseApplication

        # For jobs; this process has imported Galaxy's own galaxy_ext by now.
        os.environ["PYTHONPATH"] = NO_METADATA
        self.app: Any = UniverseApplication(is_webapp=False, **config)

    def answer(self, request: Dict[str, Any]) -> Any:
        """Do what is asked for; look anew where the database had closed our connection before."""
        from sqlalchemy.exc import DBAPIError

        do = getattr(self, request["do"])
        try:
            return do(**request["with"])
        except DBAPIError as error:
            self.app.model.session.rollback()
            if not error.connection_invalidated or request["do"] != "job":
                raise
            return do(**request["with"])

    def submit(self, tool: str, inputs: Dict[str, Any]) -> int:
        """Run a tool in a new history; return the job's id."""
        from galaxy.work.context import WorkRequestContext

        session = self.app.model.session
        history = self.app.model.History(name="harness", user=self._user())
        session.add(history)
        session.commit()
        trans = WorkRequestContext(self.app, user=history.user, history=history)
        done = self.app.toolbox.get_tool(tool).handle_input(trans, inputs, history=history)
        assert not done["job_errors"], done["job_errors"]
        return int(done["jobs"][0].id)

    def _user(self) -> Any:
        session = self.app.model.session
        user = session.query(self.app.model.User).filter_by(email=USER).first()
        if user is None:
            user = self.app.model.User(email=USER, username="harness")
            user.set_password_cleartext("of nobody else 1")
            session.add(user)
            session.commit()
        return user

    def job(self, job_id: int) -> Dict[str, Any]:
        """Return what Galaxy knows of a job."""
        session = self.app.model.session
        session.expire_all()
        job = session.get(self.app.model.Job, job_id)
        states = sorted(job.state_history, key=lambda entry: entry.id)
        told = {
            "state": str(job.state),
            "info": job.info or "",
            "handler": job.handler,
            "destination": job.destination_id,
            "params": job.destination_params or {},
            "runner": job.job_runner_name,
            "external_id": job.job_runner_external_id,
            "exit_code": job.exit_code,
            "stderr": job.stderr or "",
            "history": [[str(entry.state), entry.create_time.timestamp(), entry.info or ""]
                        for entry in states],
            "output": self._output(job),
            "output_info": [str(output.dataset.info or "") for output in job.output_datasets],
        }
        session.rollback()
        return told

    @staticmethod
    def _output(job: Any) -> Optional[str]:
        for output in job.output_datasets:
            path = output.dataset.get_file_name()
            if path and os.path.exists(path):
                with open(path, errors="replace") as content:
                    return content.read(4096)
        return None

    def stop_job(self, job_id: int) -> bool:
        """Delete a job, as its user does."""
        session = self.app.model.session
        job = session.get(self.app.model.Job, job_id)
        marked = self.app.job_manager.stop(job, reason="deleted by its user")
        session.commit()
        return bool(marked)

    def shut_down(self) -> bool:  # asked for by its name
        """Stop Galaxy as its own server does."""
        self.app.shutdown()
        return True


def main() -> None:
    """Start Galaxy, then answer requests until ``shut_down`` or the end of input."""
    # Whatever prints in Galaxy must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr,
                        format="%(asctime)s %(levelname)s [%(threadName)s] %(name)s %(message)s")
    os.chdir(os.path.dirname(sys.argv[1]))
    with open(sys.argv[1]) as config:
        inside = Inside(json.load(config))
    print(json.dumps({"value": "up"}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"value": inside.answer(request)}
        except Exception as error:
            logging.getLogger(__name__).exception("request failed: %s", line)
            answer = {"error": repr(error)}
        print(json.dumps(answer), file=answers, flush=True)
        if request["do"] == "shut_down":
            break
    # Threads of Galaxy that wait for something must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
