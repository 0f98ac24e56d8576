"""What every simulated DRM needs: a job store on disk, a clock, and a runner for each job.

Nothing here knows a DRM's words: states are ``pending``, ``running``, ``ended``; the ``why`` of a
state is one of the causes listed in ``transitions.py``. A package such as ``fake_slurm`` puts its
own words on them, and its ``dialect`` module says what a node does. Every dialect has
``environment``, ``bad_workdir``, ``bad_script``, ``killed``, ``memory_kill`` and ``out_of_memory``;
it may have ``refuse_start``, ``command_line``, ``standard_input``, ``set_limits``,
``kill_signals``, ``run_over``, ``injected`` (for ``control.add_jobs``) and ``RUNS_WITHOUT_OUTPUT``.
"""
