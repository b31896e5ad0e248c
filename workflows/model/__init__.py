"""The vocabulary of the core: jobs, outcomes, rows, rounds, events, settings. It contains no decisions."""
