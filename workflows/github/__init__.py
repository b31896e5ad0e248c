"""GitHub in words: what comments command, which facts are posted, and their texts. It reads and writes nothing."""
