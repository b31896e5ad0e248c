"""Text as such."""
