"""One host at work: state that its activities share, and the course of one attempt from begin to end, once."""
