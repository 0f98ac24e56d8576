"""A manager whose jobs end as their command line says, for tests of the seams alone.

The command line is JSON: `{"status": ..., "record": ...}`; the record is stored in the job
directory as the metadata file `runner_state`, as our managers do it.
"""

import json

from pulsar.managers.base.directory import DirectoryBaseManager


class StubManager(DirectoryBaseManager):
    """Ends each job at once, with the status and the record of its command line."""

    manager_type = "stub"

    def launch(self, job_id, command_line, **kwargs):
        job_directory = self._job_directory(job_id)
        end = json.loads(command_line)
        if end.get("record") is not None:
            job_directory.store_metadata("runner_state", end["record"], atomic=True)
        job_directory.store_metadata("stub_status", end["status"])

    def get_status(self, job_id):
        return self._job_directory(job_id).load_metadata("stub_status", "queued")

    def kill(self, job_id):
        pass
