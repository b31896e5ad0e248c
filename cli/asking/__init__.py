"""Questions to people on the terminal, and the loops that poll the service until a tree or a run has ended."""
