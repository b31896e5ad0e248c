"""Agent processes that outlive the worker that asked for them (spec: agent runs survive the worker)."""
