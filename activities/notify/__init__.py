"""Telling people: the channels, what a notification says in full, and its delivery."""
