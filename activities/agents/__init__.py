"""Adapters of the programs that do the work: one per runtime, with a common interface."""
