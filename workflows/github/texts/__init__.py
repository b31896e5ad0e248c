"""The markdown of every posted comment, as functions of rows: equal rows give equal texts."""
