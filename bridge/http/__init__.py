"""The operations over HTTP: gates that every call passes, then a route of a few lines (ruling J2)."""
