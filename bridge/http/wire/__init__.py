"""Code that all endpoints share: reading requests and writing responses."""
