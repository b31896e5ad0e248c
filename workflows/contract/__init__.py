"""The result object of an agent: locating, validating, explaining and rendering it."""
