"""The manual's Markdown as terminal lines: paragraphs and tables fit the width."""

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import TextWrapper, wrap

Line = tuple[str, bool]
"""The line, and True if it is a heading."""
_WIDEST = 100
_NARROWEST = 8
"""The least width of a table's column."""
_BETWEEN = "  "
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_ITEM = re.compile(r"(\s*)(-|\d+\.) ")
_RULE = re.compile(r"\|[-| :]+\|")
_FENCE = "```"
_INDENT = "    "
_REMARK = "  # "


def width() -> int:
    """Return the width to fill: the terminal's, but at most 100, because long lines are hard to read."""
    return max(40, min(shutil.get_terminal_size().columns, _WIDEST))


def lines(text: str, wide: int) -> Iterator[Line]:
    """Yield the lines of a page."""
    block: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        fence = line.strip().startswith(_FENCE)
        if fence or fenced:
            yield from _ended(block, wide)
            block = []
            if not fence:
                yield from ((each, False) for each in _code(line.rstrip(), wide))
            fenced = fenced != fence
        elif not line.strip() or line.startswith("#"):
            yield from _ended(block, wide)
            block = []
            yield plain(line), line.startswith("#")
        else:
            if block and _begins(line, block[0]):
                yield from _ended(block, wide)
                block = []
            block.append(line)


def _begins(line: str, first: str) -> bool:
    """Return whether a line begins a new block."""
    return line.startswith("|") != first.startswith("|") or _ITEM.match(line) is not None


def plain(text: str) -> str:
    """Remove the marks of headings, bold print and comments; of links keep the words, and the address if it is
    external.
    """
    text = re.sub(r"<!--.*?-->|^#+ ", "", text).replace("**", "")
    return _LINK.sub(lambda link: f"{link[1]} ({link[2]})" if "://" in link[2] else link[1], text)


def _code(line: str, wide: int) -> Iterator[str]:
    """Yield a line of code unchanged; only its trailing comment is folded if it is too long."""
    line = f"{_INDENT}{line}" if line else ""
    command, mark, remark = line.partition(_REMARK)
    room = wide - len(command + _REMARK)
    if not mark or len(line) <= wide or room < _NARROWEST:
        yield line
        return
    first, *more = wrap(remark, room, break_on_hyphens=False)
    yield f"{command}{_REMARK}{first}"
    yield from (f"{' ' * len(command)}{_REMARK}{each}" for each in more)


def _ended(block: Sequence[str], wide: int) -> Iterator[Line]:
    """Yield the lines of a finished block: a paragraph, a list item or a table."""
    if not block:
        return
    if block[0].startswith("|"):
        yield from ((line, False) for line in _table(block, wide))
        return
    text = plain(" ".join(line.strip() for line in block))
    item = _ITEM.match(block[0])
    before = item[1] if item else re.match(r"\s*", block[0])[0]  # type: ignore[index]
    after = " " * len(item[0]) if item else before
    filled = TextWrapper(wide, before, after, break_long_words=False, break_on_hyphens=False).wrap(text)
    yield from ((line, False) for line in filled)


def _table(block: Sequence[str], wide: int) -> Iterator[str]:
    rows = [[plain(cell).replace(r"\|", "|") for cell in _cells(line)] for line in block if not _RULE.fullmatch(line)]
    widths = _fitted(list(zip(*rows, strict=True)), wide - len(_BETWEEN) * (len(rows[0]) - 1))
    for row in [rows[0], ["-" * size for size in widths], *rows[1:]]:
        cells = [wrap(cell, size, break_on_hyphens=False) or [""] for cell, size in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            yield _BETWEEN.join(part.ljust(size) for part, size in zip(parts, widths, strict=True)).rstrip()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def _fitted(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the columns' widths: narrow the widest until all fit, and break words only as a last resort."""
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    for lowest in (words, [_NARROWEST] * len(columns)):
        while sum(widths) > room and (can := [at for at, size in enumerate(widths) if size > lowest[at]]):
            widths[max(can, key=widths.__getitem__)] -= 1
    return widths
