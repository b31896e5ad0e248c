"""One file per change of the schema, oldest first; a file that was released is never edited."""
