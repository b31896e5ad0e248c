"""Reading jobs and trees: their rows, events, pauses, output and spend, and the hosts they wait for."""
