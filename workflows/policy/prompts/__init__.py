"""The words a coordinator is continued with (ruling E6)."""
