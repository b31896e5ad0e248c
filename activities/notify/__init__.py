"""Telling people: one module per channel, all of the same shape."""
