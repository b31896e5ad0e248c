"""One host at work: what all its activities share, and how it brings one attempt from its begin to its end, once."""
