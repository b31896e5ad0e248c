"""Side effects: agents' programs, git, the store, settings, notifications. See README.md beside this."""
