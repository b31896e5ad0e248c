"""Everything that waits for a person."""
