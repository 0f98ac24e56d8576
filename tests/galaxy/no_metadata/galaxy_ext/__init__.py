"""See ``set_metadata.py`` below."""
