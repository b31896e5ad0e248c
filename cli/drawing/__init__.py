"""Printing and drawing. All output goes through `output`, which makes text safe. Only this package imports rich."""
