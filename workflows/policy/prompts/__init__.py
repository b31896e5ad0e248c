"""The texts agents are given."""
