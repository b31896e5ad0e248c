"""A comment rendered by GitHub's own markdown library: the lines a reader sees as the writer's words."""

from html.parser import HTMLParser

import pytest

cmarkgfm = pytest.importorskip("cmarkgfm", reason="not installed: ./dev-cluster/setup --dev")

_STARTS = frozenset({"p", "li", "h1", "h2", "h3", "th", "td", "br"})
_VOID = frozenset({"br", "hr", "img", "input"})
_NOT_MINE = frozenset({"blockquote", "code", "pre", "del", "details", "s", "q", "script"})


def words_on_page(body: str, begin: str) -> int:
    """Count the lines that begin so, outside quotes, code and struck-out or folded text."""
    page = _Page(begin)
    text = body.replace("\r\n", "\n").replace("\r", "\n")
    page.feed(cmarkgfm.github_flavored_markdown_to_html(text, options=cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))
    return page.seen


class _Page(HTMLParser):
    def __init__(self, begin: str) -> None:
        super().__init__()
        self.seen = 0
        self._begin = begin
        self._open: list[str] = []
        self._first = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._first = self._first or tag in _STARTS
        self._open += [] if tag in _VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        for number, line in enumerate(data.split("\n")):
            self._first = self._first or number > 0
            self.seen += self._first and line.startswith(self._begin) and not _NOT_MINE & set(self._open)
            self._first = self._first and not line
