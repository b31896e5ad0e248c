"""Side effects: agents' programs, git, what is kept, settings, telling people. See README.md beside this."""
