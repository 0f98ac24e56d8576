"""A simulated Grid Engine, SGE 8.1.9 as Debian has it: ``qsub``, ``qstat``, ``qdel``, ``qhold``,
``qrls``, ``qmod``, ``qacct`` over a state folder of ``fake_drm``. See ../README.md.
"""
