"""A simulated HTCondor schedd and pool in a state folder, behind ``htcondor2.py`` next to it.

``expressions``: ClassAd expressions, parsed and evaluated. ``store``: the folder with job queue,
history and settings. ``events``: the text of every event of a job's log. ``submit``: submit
commands to a job ad. ``changes``: what happens to a job (start, hold, release, end). ``runner``:
one process per job that runs it. ``play``: holds, evictions and accidents on demand. ``control``:
what tests call. ``client``: Schedd and Collector. ``small``: stands in where the wheel is missing.
"""
