"""Defusing of agents' text for a comment: the text keeps its look, and cannot command, mention, refer or forge (rulings
F7, L11).

References (`#12`, `GH-12`, the address of an issue) would leave a line in the thread they name. Without a library:
sanitisers parse HTML; here the result has to be markdown.

A zero-width space behind the character that would begin something special works inside code spans and fences too, where
escapes would show. Constructs of several lines (fences, HTML) are confined by the list item that contains every text.
"""

import re
from html import unescape
from urllib.parse import quote, unquote

from workflows.text.invisible import without_invisible

_BREAK = "\u200b"
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ADDRESS = re.compile(r"(?i:https?:(?=//[^\s<>]{1,300}?/(?:issues|pulls?|discussions)/[0-9])|\bwww(?=\.git))")
_COMMAND = re.compile(r"(?im:^[^\w/\n]*+/(?=service(?:\s|\Z)))")
_SPECIAL = re.compile(
    r"#(?=[0-9])"  # references, also to other repositories
    r"|(?i:\bGH\\?-)(?=[0-9])"  # another form of references
    r"|&(?=#|[A-Za-z][A-Za-z0-9]{1,31};)"  # entities, which can encode any of these characters
    r"|@(?=\\?[A-Za-z0-9_-])"  # mentions and mail addresses, escaped or not
    r"|<(?=[A-Za-z/!?])"  # HTML, comments, autolinks
    r"|!(?=\[)"  # images, which are loaded without a click
    r"|\](?=\((?!\s*<?https?://))"  # links elsewhere than to the web
    r"|\](?=:)"  # link definitions
    r"|(?m:^[ \t>]*+)(?=(?:=++|-++|(?:[-*_][ \t]*+){3,}+)[ \t]*+(?:\n|\Z))"  # underlines and rules
    r"|(?m:^(?:[ \t>]|(?:[*+-]|[0-9]{1,9}[.)])[ \t])*+)(?=#{1,6}(?:\s|\Z))"  # headings
)
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_OF_ADDRESSES = "%:/?#&=+,.-_"
"""Characters kept in a link's address. A `;` would end an entity, which can encode any character."""


def visible(text: str) -> str:
    """Drop characters without width, and mark control and direction characters."""
    return without_invisible(_LINE_ENDS.sub("\n", text))


def inert(text: str) -> str:
    """Defuse everything in the text that would act or break out of its place."""
    text = visible(text)
    for begins in (_ADDRESS, _COMMAND, _SPECIAL):
        text = begins.sub(lambda match: match[0] + _BREAK, text)
    return text


def address(url: str) -> str:
    """Percent-encode the address of a link: nothing in it ends the link or has another meaning."""
    return quote(_LONE_PERCENT.sub("%25", url), safe=_OF_ADDRESSES)


def refers(url: str) -> bool:
    """Return whether an address is an issue's, a pull request's or a discussion's: linking it would create a
    reference.
    """
    return _ADDRESS.search(unquote(unescape(url))) is not None
