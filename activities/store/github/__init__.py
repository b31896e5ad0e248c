"""Rows of what is known of GitHub, a module for each subject."""
