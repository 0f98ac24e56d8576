"""What every simulated DRM needs: a job store on disk, a clock, and a runner for each job.

Nothing here knows a DRM's words: states are ``pending``, ``running``, ``ended``; the ``why`` of a
state is one of the causes listed in ``transitions.py``. A package such as ``fake_slurm`` puts its
own words on them.
"""
