"""The table of runtimes: facts about each agent program, independent of the rest of the service."""
