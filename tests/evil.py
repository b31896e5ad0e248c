"""A hostile text for terminals and pages, and checks that it had no effect."""

import re

from workflows.text.invisible import visible

EVIL = (
    "error: FORGED \x1b]8;;http://x\x07l\x1b]52;c;eA==\x07\x1b[2J\x9b31m\u202e\u2066\U000e0041\u200b\u2028\x85\x7f\rover"
    "\b\nservice job retry FORGED\r\nerror: FORGED\ntry: FORGED\n  service resume FORGED\n\x1b[31m# From a person\n"
)
"""Links, the clipboard, a cleared screen, colours, a reversed line, hidden characters; and lines that imitate ours."""

_OURS = re.compile(r"\s*(error:|try:|note:|service [a-z]+ [a-z]*|watch it:) ?.{0,3}FORGED")


def raw(text: str) -> list[str]:
    """Return the lines with invisible characters left in them."""
    return [ascii(line) for line in text.split("\n") if visible(line) != line or "\t" in line]


def forged(text: str) -> list[str]:
    """Return the lines that imitate ours."""
    return [line for line in text.split("\n") if _OURS.match(line)]
