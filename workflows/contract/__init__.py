"""The result object an agent returns: finding it, validating it, explaining it, rendering it."""
