"""Pipelines, pure: what a definition may say, what a payload may hold, and the course of a run (ruling K1)."""
