"""Pipelines, without side effects: definitions, payloads, and the course of a run (ruling K1)."""
