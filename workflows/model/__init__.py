"""The words all the rest is said in: jobs, outcomes, rows, rounds, events, settings. Nothing in here decides."""
