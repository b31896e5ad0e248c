"""The manual's Markdown as terminal lines, parsed and laid out by rich: paragraphs and tables fit the width."""

import io
import re
import shutil
from collections.abc import Iterator
from textwrap import wrap
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from cli.drawing.lines import Piece, ScreenLine, Tone

_WIDEST = 100
_INDENT = "    "
_REMARK = "  # "
_NARROWEST = 8
"""The least width of a folded comment."""
_OTHER_PAGE = re.compile(r"\[([^\[\]]+)\]\((?![^)\s]{0,40}://)[^)\s]{1,200}\)")
_BOLD = Theme({"markdown.h1": "bold", "markdown.h2": "bold", "markdown.h3": "bold", "markdown.code": "bold"})


def width() -> int:
    """Return the width to fill: the terminal's, but at most 100, because long lines are hard to read."""
    return max(40, min(shutil.get_terminal_size().columns, _WIDEST))


def lines(text: str, wide: int) -> Iterator[ScreenLine]:
    """Yield the lines of a page. Links to other pages are shown by their text only."""
    console = Console(file=io.StringIO(), width=wide, theme=_BOLD)
    page = _ManualPage(_OTHER_PAGE.sub(r"\1", text), hyperlinks=False)
    for row in Segment.split_lines(console.render(page, console.options)):
        pieces = [Piece(part.text, Tone.STRONG if part.style and part.style.bold else Tone.PLAIN) for part in row]
        while pieces and not pieces[-1].text.strip():
            pieces.pop()
        yield ScreenLine(*pieces[:-1], *(last._replace(text=last.text.rstrip()) for last in pieces[-1:]))


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(("h1", "h2", "h3"), "left")


class _CodeLines(CodeBlock):
    """A code block. Its lines stay as they are, so that they can be copied; only a comment behind a command is
    folded.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip().split("\n")
        folded = (part for line in code for part in _fold(f"{_INDENT}{line}".rstrip(), options.max_width))
        yield Text("\n".join(folded), no_wrap=True, overflow="ignore")


class _ManualPage(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeLines,
        "code_block": _CodeLines,
    }


def _fold(line: str, wide: int) -> Iterator[str]:
    command, mark, remark = line.partition(_REMARK)
    room = wide - len(command + _REMARK)
    if not mark or len(line) <= wide or room < _NARROWEST:
        yield line
        return
    first, *more = wrap(remark, room, break_on_hyphens=False)
    yield f"{command}{_REMARK}{first}"
    yield from (f"{' ' * len(command)}{_REMARK}{part}" for part in more)
