"""The vocabulary of the core: jobs, outcomes, rows, rounds, events, settings. Nothing in here decides."""
