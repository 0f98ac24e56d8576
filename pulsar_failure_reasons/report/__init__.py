"""What the failure ledger tells: counts and rates, worst nodes, limits that are too low.

``period`` reads ``--since``, ``queries`` asks the ledger, ``build`` puts a :class:`Report` together
and each ``as_*`` module writes it in one format.
"""
