"""A prompt taken apart as the program reads it that is told what its marks mean."""

import re

_BLOCK = re.compile(r'^<data-([0-9a-f]{12}) by="([^"\n]*)">\n(.*?)\n</data-\1>$', re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"(?<=data-)[0-9a-f]{12}")
_SPAN = re.compile(r"`[^`\n]*`")


def blocks(prompt: str) -> list[tuple[str, str]]:
    """Author and text of each block, in order."""
    return [(found[2], found[3]) for found in _BLOCK.finditer(prompt)]


def said_in(prompt: str) -> list[str]:
    """The texts alone."""
    return [text for _, text in blocks(prompt)]


def frame(prompt: str) -> str:
    """What is left when the texts of others are taken away: our words alone, whatever those texts are."""
    return _MARK.sub("MARK", _SPAN.sub("`...`", _BLOCK.sub("(block)", prompt)))


def unmarked(prompt: str) -> str:
    """The prompt with the same word for its mark, whatever it is."""
    return _MARK.sub("MARK", prompt)
