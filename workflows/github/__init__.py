"""GitHub as decisions and words: what comments command, whether work is ready, which facts are posted, their texts."""
