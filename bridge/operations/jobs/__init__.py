"""Reading jobs and trees: rows, events, pauses, output, spend, and the hosts they wait for."""
