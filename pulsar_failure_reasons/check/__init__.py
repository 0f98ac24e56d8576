"""Will reasons arrive from this host? The checks behind ``pulsar-failure-reasons check``.

Each module holds the checks of one theme: functions that take a :class:`.site.Site` (or a
:class:`.galaxy_site.GalaxySite`) and yield findings. Nothing outside of temporary folders is
changed, and nothing here is imported by the managers.
"""
