"""The programs that do the work: one adapter per runtime, all of the same shape."""
