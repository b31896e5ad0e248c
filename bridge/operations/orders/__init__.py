"""Orders about trees: start, end, answer a pause, retry a part, resolve a conflict."""
