"""A simulated LSF 10.1: ``bsub``, ``bjobs``, ``bhist``, ``bacct``, ``bkill``, ``bstop``,
``bresume``, ``brequeue`` over a state folder of ``fake_drm``. See ../README.md.
"""
