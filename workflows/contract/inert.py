"""Agent text made harmless for a comment: it keeps its look, and can neither command, mention, refer nor forge.

Rulings F7 and L11. References (`#12`, `GH-12`, the address of an issue) would leave a line in the thread they name.

No library: sanitisers take HTML apart; here markdown has to come out as markdown.
A zero-width space behind the character that would begin something special works inside code spans and fences too, where
escapes would show. What spans lines (fences, HTML) is confined by the list item that every text is put into.
"""

from html import unescape
from urllib.parse import quote, unquote

from workflows.contract.patterns import compiled
from workflows.contract.visible import left_out

_BREAK = "\u200b"
_LINE_ENDS = compiled("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ADDRESS = compiled(r"(?i:https?:(?=//[^\s<>]{1,300}?/(?:issues|pulls?|discussions)/[0-9])|\bwww(?=\.git))")
_COMMAND = compiled(r"(?im:^[^\w/\n]*+/(?=service(?:\s|\Z)))")
_SPECIAL = compiled(
    r"#(?=[0-9])"  # references, also to other repositories
    r"|(?i:\bGH\\?-)(?=[0-9])"  # the same in another form
    r"|&(?=#|[A-Za-z][A-Za-z0-9]{1,31};)"  # entities, which stand for any of these characters
    r"|@(?=\\?[A-Za-z0-9_-])"  # mentions and mail addresses, escaped or not
    r"|<(?=[A-Za-z/!?])"  # HTML, comments, autolinks
    r"|!(?=\[)"  # images, which are loaded unasked
    r"|\](?=\((?!\s*<?https?://))"  # links elsewhere than to the web
    r"|\](?=:)"  # link definitions
    r"|(?m:^[ \t>]*+)(?=(?:=++|-++|(?:[-*_][ \t]*+){3,}+)[ \t]*+(?:\n|\Z))"  # underlines and rules
    r"|(?m:^(?:[ \t>]|(?:[*+-]|[0-9]{1,9}[.)])[ \t])*+)(?=#{1,6}(?:\s|\Z))"  # headings
)
_LONE_PERCENT = compiled(r"%(?![0-9A-Fa-f]{2})")
_OF_ADDRESSES = "%:/?#&=+,.-_"
"""What stays as it is in the address of a link. A `;` would end an entity, which stands for any character."""


def visible(text: str) -> str:
    """The text with nothing in it that is not seen: what has no width is left out, what turns or controls is marked."""
    return left_out(_LINE_ENDS.sub("\n", text))


def inert(text: str) -> str:
    """The text with everything that would act or stand out of its place defused."""
    text = visible(text)
    for begins in (_ADDRESS, _COMMAND, _SPECIAL):
        text = begins.sub(lambda found: found[0] + _BREAK, text)
    return text


def address(url: str) -> str:
    """Percent-encode the address of a link: nothing in it ends the link, or is read as anything else."""
    return quote(_LONE_PERCENT.sub("%25", url), safe=_OF_ADDRESSES)


def refers(url: str) -> bool:
    """The address is that of an issue, a pull request or a discussion: a link to it would refer to it."""
    return _ADDRESS.search(unquote(unescape(url))) is not None
