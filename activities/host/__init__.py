"""One host's part: the state that its activities share, and attempts, each run exactly once."""
