"""Orders about trees: start one, end one, answer a pause, run a part again, resolve a conflict."""
