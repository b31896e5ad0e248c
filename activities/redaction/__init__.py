"""Redaction of all that is stored or shown: secrets are removed; those that work needs are stored apart (ruling N7)."""
