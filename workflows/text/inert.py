"""Defusing of agents' text for a comment: the text looks the same, but cannot give commands, mention people, create
references or forge the service's text (rulings F7, L11).

References (`#12`, `GH-12`, the address of an issue) would leave a line in the thread that they name. No library is
used: sanitisers produce HTML, but the result must be markdown.

A zero-width space is put behind each character that would begin something special: unlike an escape, it is not visible
inside code spans and fences. Constructs of several lines (fences, HTML) cannot leave the list item that contains the
text.
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
"""Characters kept in a link's address. `;` is not: it would end an entity, which can encode any character."""


def visible(text: str) -> str:
    """Remove characters without width, and replace control and direction characters by a mark."""
    return without_invisible(_LINE_ENDS.sub("\n", text))


def inert(text: str) -> str:
    """Defuse everything in the text that would take effect or end the text's place."""
    text = visible(text)
    for begins in (_ADDRESS, _COMMAND, _SPECIAL):
        text = begins.sub(lambda match: match[0] + _BREAK, text)
    return text


def address(url: str) -> str:
    """Percent-encode the address of a link, so that nothing in it ends the link or has a special meaning."""
    return quote(_LONE_PERCENT.sub("%25", url), safe=_OF_ADDRESSES)


def refers(url: str) -> bool:
    """Return whether an address is that of an issue, a pull request or a discussion: a link to it would create a
    reference.
    """
    return _ADDRESS.search(unquote(unescape(url))) is not None
