"""Seals that prove data to be the service's own: the key in its home, and keys derived from it."""
