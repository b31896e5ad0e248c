"""Merge the work of legs: two commits, a line of a chain, a task branch, a work folder (rulings I2, I5)."""
