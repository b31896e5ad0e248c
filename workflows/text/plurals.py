"""Numbers and nouns that agree."""


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, as `1 commit` or `2 commits`; without a `plural`, the noun takes an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
