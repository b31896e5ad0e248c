"""A comment as read from GitHub: whether it may command and on which lines (ruling L5), and its text as a job's task
(L11).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import floor

from markdown_it import MarkdownIt
from markdown_it.token import Token

from workflows.github.facts import holds_mark
from workflows.text.inert import visible
from workflows.text.quoted_data import Fences, inline, write_fenced

_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_NUMBER = "\ue000"
"""A private-use character around line numbers, by which the lines are found again in the parsed tokens."""

_NUMBERED = re.compile(rf"\S+?{_NUMBER}(\d+){_NUMBER}")
_TAG = re.compile(r"<!--|-->|<(/?)([A-Za-z][A-Za-z0-9-]*)")
_COMMENT = re.compile(r"<!--|-->")
_WHOLE = re.compile(r"<!--.*?(?:-->|\Z)|</?[A-Za-z](?:[^<>\"'`]|\"[^\"]*\"|'[^']*')*+>|<[!?][^<>]*>", re.DOTALL)
_BEGINS = re.compile(r"<[A-Za-z/!?]")
_AS_CODE_OR_QUOTE = {"blockquote", "code", "del", "kbd", "pre", "q", "s", "samp", "strike", "table", "tt", "var", "xmp"}
_NOT_SHOWN = {"details", "iframe", "math", "noembed", "noframes", "noscript", "plaintext", "script", "style", "svg"}
_COVERS = frozenset(_AS_CODE_OR_QUOTE | _NOT_SHOWN | {"template", "textarea", "title"})
"""Elements whose content is shown as code, as a quote, as struck out, or not at all."""

_UNDERLINED = frozenset("=-")


@dataclass
class _Open:
    """The HTML elements and comments open at a place; one that is never closed extends to the end."""

    names: list[str] = field(default_factory=list)
    broken: bool = False
    """True if a block of HTML has an incomplete tag: only a browser knows how much of the remaining text is inside
    it.
    """

    @property
    def anything(self) -> bool:
        return self.broken or bool(self.names)

    def read(self, html: str, pattern: re.Pattern[str] = _TAG) -> None:
        for match in pattern.finditer(html):
            if match[0] == "-->":
                self._close("!--")
            elif self.names[-1:] == ["!--"]:
                continue
            elif match[0] == "<!--":
                self.names.append("!--")
            elif (name := match[2].lower()) in _COVERS:
                self._close(name) if match[1] else self.names.append(name)

    def _close(self, name: str) -> None:
        if name in self.names:
            del self.names[len(self.names) - 1 - self.names[::-1].index(name) :]


@dataclass(frozen=True, slots=True)
class Reading:
    """The line numbers of a comment by kind."""

    spoken: tuple[int, ...]
    """The wanted lines that begin in plain text."""
    hidden: frozenset[int]
    """The lines of HTML comments, which the page does not show."""


def read_lines(lines: Sequence[str], wanted: Collection[int]) -> Reading:
    """Return which wanted lines begin in plain text: outside code, quotes, HTML, emphasis, links and tables."""
    spoken: list[int] = []
    hidden: set[int] = set()
    opened, quotes, before = _Open(), 0, ""
    for token in _MARKDOWN.parse(_number_lines(lines, wanted)):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "html_block":
            hidden.update(range(*token.map) if token.map and token.content.lstrip().startswith("<!--") else ())
            opened.read(token.content)
            opened.broken = opened.broken or _BEGINS.search(_WHOLE.sub("", token.content)) is not None
        elif token.type == "inline":
            numbers = list(_beginnings(token.children or (), opened))
            spoken += numbers if quotes == 0 and before in ("paragraph_open", "heading_open") else ()
        before = token.type if token.type != "heading_open" or token.markup in _UNDERLINED else ""
    return Reading(tuple(spoken), frozenset(hidden))


def _number_lines(lines: Sequence[str], wanted: Collection[int]) -> str:
    """Mark each wanted line with its number, placed after the line's first word."""
    clean = [line.replace(_NUMBER, "\N{REPLACEMENT CHARACTER}") for line in lines]
    for number in wanted:
        word = clean[number].split(" ", 1)[0].split("\t", 1)[0]
        clean[number] = f"{word}{_NUMBER}{number}{_NUMBER}{clean[number][len(word) :]}"
    return "\n".join(clean)


def _beginnings(children: Sequence[Token], opened: _Open) -> Iterator[int]:
    """Yield the numbers of lines that begin as plain text of the paragraph itself, inside no open element."""
    first, level = True, 0
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            first = True
            continue
        if child.type == "text":
            match = _NUMBERED.match(child.content) if first and level == 0 and not opened.anything else None
            if match:
                yield int(match[1])
            opened.read(child.content, _COMMENT)
        elif child.type == "html_inline":
            opened.read(child.content)
        first, level = False, level + child.nesting


PERSON = "User"
BOT_ENDING = "[bot]"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a pull request or issue. Times are seconds since 1970."""

    id: int
    author: str
    """The login; empty for a deleted account."""
    author_type: str
    """`User`, `Bot`, `Organization` or `Mannequin`, as reported by GitHub."""
    author_id: int
    body: str
    created_at: float
    updated_at: float
    number: int
    """The number of its pull request or issue."""
    url: str

    @property
    def on_pull_request(self) -> bool:
        """True if the comment's address is a pull request's."""
        return f"/pull/{self.number}" in self.url


def reason_to_ignore(comment: Comment, ours: Collection[str], bound_since: float) -> str:
    """Return the reason to ignore a comment; empty if it may command. `ours` are the service's own logins.

    GitHub's times are whole seconds, so a comment of the second in which the tree was bound counts.
    """
    login = comment.author.casefold()
    if login in {our.casefold() for our in ours}:
        return "it is our own"
    if holds_mark(comment.body):
        return "it holds the mark of a comment of the service"
    if comment.author_type != PERSON or not login or login.endswith(BOT_ENDING):
        return "its author is no person"
    if comment.updated_at != comment.created_at:
        return "it was edited"
    if comment.created_at < floor(bound_since):
        return "it is older than the tree's binding"
    return ""


_OBEYED = "The exception is your task: do what they ask."


def task_from_comment(comment: Comment, text: str, repo: str) -> str:
    """Write the message of a job that a comment requested. Its first line contains nothing from the comment, whose text
    is always fenced.
    """
    return write_fenced(f"{comment.author}\0{text}", lambda fences: _message(comment, text, repo, fences))


def _message(comment: Comment, text: str, repo: str, fences: Fences) -> str:
    kind = "pull request" if comment.on_pull_request else "issue"
    who = "".join(letter for letter in comment.author if letter.isalnum() or letter in "-_")[:80] or "somebody"
    return (
        f"Request of {who} on {kind} {comment.number} of {repo}\n\n"
        f"The GitHub user {inline(comment.author)}, who may write to the repository {inline(repo)}, asked for this job"
        f" in a comment on its {kind} {comment.number} ({inline(comment.url)}). What they wrote is your task."
        f" {fences.meaning(obeyed=_OBEYED)}\n\n{fences.block(visible(text), f'{who} on GitHub')}"
    )
