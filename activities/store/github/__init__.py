"""Rows about GitHub, a module for each subject."""
