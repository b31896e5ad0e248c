"""One set of operations, and every surface that is not a terminal."""
