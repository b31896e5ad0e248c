"""Asking people on the terminal, and the service again and again until a tree or a run is over."""
