"""Redaction of all that is stored or shown: secrets are removed; those that jobs need are stored separately (ruling
N7).
"""
