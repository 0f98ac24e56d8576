"""A simulated PBS, as OpenPBS 23.06, PBS Pro 19 or Torque 6 (the folder's ``flavour``): ``qsub``,
``qstat``, ``qdel``, ``qhold``, ``qrls``, ``qsig``, ``qrerun``, ``tracejob`` over a state folder of
``fake_drm``. See ../README.md.
"""
