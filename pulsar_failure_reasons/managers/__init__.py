"""The managers that ``app.yml`` names, and what they share."""
