"""Syntax colours of source lines, as classes of the stylesheet.

Lexers run in a helper process with a deadline: a file can be written so that a lexer's patterns take for ever.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from markupsafe import escape

from activities.host.helper_process import TooMuchError, apart

if TYPE_CHECKING:
    from pygments.lexer import Lexer

SECONDS = 2.0
LONGEST_LINE = 1_000
"""A text with a longer line, such as minified code, is shown without colours."""

_CLASSES = {
    "Keyword": "k",
    "Keyword.Type": "t",
    "Keyword.Constant": "n",
    "Operator.Word": "k",
    "Name.Function": "f",
    "Name.Class": "f",
    "Name.Tag": "f",
    "Generic.Heading": "f",
    "Generic.Subheading": "f",
    "Name.Builtin": "t",
    "Name.Exception": "t",
    "Name.Builtin.Pseudo": "",
    "Name.Decorator": "d",
    "Name.Attribute": "d",
    "Comment.Preproc": "d",
    "Literal.String": "s",
    "Literal.Number": "n",
    "Comment": "c",
}
"""The class of each type of token and of its subtypes; others have the colour of the text."""

Texts = Sequence[str]
Lines = tuple[str, ...]
"""The lines of a text as HTML."""


def highlight(files: Sequence[tuple[str, Texts]]) -> list[tuple[Lines, ...]]:
    """Return the lines of each file's texts as HTML; all of them without colours if that takes too long."""
    try:
        return apart(SECONDS, colour, files)
    except TooMuchError:
        return [tuple(map(_plain, texts)) for _, texts in files]


def colour(files: Sequence[tuple[str, Texts]]) -> list[tuple[Lines, ...]]:
    """Return the lines of each file's texts as HTML, in this process."""
    return [tuple(_lines(path, text) for text in texts) for path, texts in files]


def _lines(path: str, text: str) -> Lines:
    lexer = _lexer(PurePosixPath(path).name)
    if lexer is None or any(len(line) > LONGEST_LINE for line in text.split("\n")):
        return _plain(text)
    return tuple(map("".join, _rows(lexer, text)))


def _plain(text: str) -> Lines:
    return tuple(str(escape(line)) for line in text.split("\n"))


def _rows(lexer: "Lexer", text: str) -> Iterator[list[str]]:
    """Yield the pieces of each line; neighbours of one class are one piece."""
    row, last, waiting = list[str](), "", ""

    def piece() -> str:
        inner = str(escape(waiting))
        return f"<span class={last}>{inner}</span>" if last and waiting.strip() else inner

    for kind, value in lexer.get_tokens(text):
        name = _class_of(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                row.append(piece())
                yield row
                row, waiting = [], ""
            if name != last:
                row.append(piece())
                waiting, last = "", name
            waiting += part
    row.append(piece())
    yield row


@lru_cache(256)
def _class_of(kind: Any) -> str:
    while kind.parent is not None:
        if (css_class := _CLASSES.get(".".join(kind))) is not None:
            return css_class
        kind = kind.parent
    return ""


@lru_cache(256)
def _lexer(name: str) -> "Lexer | None":
    """Return the lexer for a file's name; None for plain text and unknown names."""
    from pygments.lexers import get_lexer_for_filename
    from pygments.lexers.special import TextLexer
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return None if isinstance(lexer, TextLexer) else lexer
