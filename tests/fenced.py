"""A parser of prompts, by the marks that they explain to programs."""

import re

_BLOCK = re.compile(r'^<data-([0-9a-f]{12}) by="([^"\n]*)">\n(.*?)\n</data-\1>$', re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"(?<=data-)[0-9a-f]{12}")
_SPAN = re.compile(r"`[^`\n]*`")


def blocks(prompt: str) -> list[tuple[str, str]]:
    """Return author and text of each block, in order."""
    return [(match[2], match[3]) for match in _BLOCK.finditer(prompt)]


def said_in(prompt: str) -> list[str]:
    """Return the texts of the blocks."""
    return [text for _, text in blocks(prompt)]


def frame(prompt: str) -> str:
    """Return the prompt without quoted texts: our own words, whatever those texts are."""
    return _MARK.sub("MARK", _SPAN.sub("`...`", _BLOCK.sub("(block)", prompt)))


def unmarked(prompt: str) -> str:
    """Return the prompt with a constant mark."""
    return _MARK.sub("MARK", prompt)
