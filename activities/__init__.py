"""Side effects: agent runs, git, the store, artifacts, settings."""
