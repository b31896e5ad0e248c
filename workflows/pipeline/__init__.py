"""Pipelines, without side effects: definitions, payloads, and the reducer of a run (ruling K1)."""
