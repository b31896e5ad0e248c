"""The work of one host: state that its activities share, and each attempt, run once from begin to end."""
