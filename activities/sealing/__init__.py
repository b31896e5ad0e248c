"""What the service knows again as its own: the key in its home, and what is derived from it."""
