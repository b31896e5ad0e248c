"""The functions that every surface calls: one module per noun."""
