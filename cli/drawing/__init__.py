"""Printing and drawing. `output` is the only way out, and makes all text safe. Only this package imports rich."""
