"""Pipelines: definitions, runs, schedules, and their workflows."""
