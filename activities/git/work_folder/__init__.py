"""A work folder of a job: made, filled, read as data after the run, committed, removed (rulings I1 to I4, N3)."""
