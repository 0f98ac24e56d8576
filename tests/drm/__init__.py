"""Case tables for the DRM modules: one row, one situation."""
