"""The failure ledger: every reason, and how many jobs ended, in a database that can be queried.

``entry`` is one end as it is stored, ``settings`` where an operator wants it, ``writer`` the queue
and the thread that writes; none of them imports SQLAlchemy, which a Pulsar host may lack.
``database`` does, and says in one line what to install.
"""
