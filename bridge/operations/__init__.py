"""The functions that every surface calls, in rooms by subject."""
