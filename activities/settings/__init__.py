"""The service home and the settings in it (ruling K4)."""
