"""The one way out of the command line: whatever is printed or asked goes through here (ruling N6).

Text of agents and of strangers is part of what is shown. Nothing in it reaches the terminal unseen, and none of its
lines looks like one of ours: what `say` is given are lines, an end of a line in one is shown as an escape, and texts
that have lines of their own go through `prefixed` first. A `Line` of `cli.drawing` is drawn where there is a terminal,
in sequences of ours; everywhere else it is the text it consists of.
"""

import errno
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Protocol

from cli.drawing.lines import FOLDED, Line, Piece
from cli.drawing.looks import Look
from cli.drawing.screens import drawn, screen_of
from workflows.contract.visible import in_json, one_line, prefixed, visible

if TYPE_CHECKING:
    from typing import TextIO

    from cli.drawing.tables import Column
    from workflows.model.errors import ServiceError

_NAME = re.compile(r"[\w@/+.,#-]+(?: ago| days| said)?")
_OTHERS = re.compile(r"[^\x00-\x7f]")
_COLOUR = "\x1b[{}m{}\x1b[0m"
AS_JSON = "--json"
_below: "Below | None" = None
_kept: list[str] | None = None
"""What is said while a command is carried out whose text may need a pager."""
_elsewhere: Callable[[str], None] | None = None
_for_programs = False
"""Whether errors are JSON: a program has typed the command."""


class Below(Protocol):
    """What stands below all that is printed, as a line of progress does."""

    def aside(self) -> AbstractContextManager[None]:
        """It is gone meanwhile."""


@contextmanager
def stand_below(what: Below) -> Iterator[None]:
    """Whatever is printed meanwhile stands above it."""
    global _below
    before, _below = _below, what
    try:
        yield
    finally:
        _below = before


def typed(words: Sequence[str]) -> None:
    """These words make up the command: errors are told as JSON when `--json` is one of them (ruling K6)."""
    global _for_programs
    _for_programs = AS_JSON in words


def is_for_programs() -> bool:
    """Whether they are."""
    return _for_programs


def say(*lines: str) -> None:
    """Lines to the person; an empty one when there is none."""
    _put(sys.stdout, _shown(sys.stdout, lines or ("",)))


def tell(*lines: str) -> None:
    """Lines beside the result, which alone goes to standard output."""
    with suppress(OSError), _above():  # there is nobody left to tell
        sys.stderr.write(_shown(sys.stderr, lines))
        sys.stderr.flush()


def say_json(value: Any) -> None:
    """One JSON document."""
    say_json_text(json.dumps(value, indent=2, ensure_ascii=False))


def say_json_line(value: Any) -> None:
    """One JSON document on a line of its own, for programs that read line by line."""
    say_json_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def say_json_text(document: str) -> None:
    """A JSON document that is text already."""
    _put(sys.stdout, _json_for(sys.stdout, document) + "\n")


def say_table(headings: "Sequence[str | Column]", rows: Iterable[Sequence[str]], empty: str) -> set[str]:
    """Aligned columns, or a sentence where there is nothing to show. On a terminal they fit its width.

    The headings are returned for which there was no room.
    """
    from cli.drawing.tables import columns_of, fitted, plain, without_room

    table = [[named(first), *map(one_line, rest)] for first, *rest in rows]
    if not table:
        say(empty)
        return set()
    columns, screen = columns_of(headings), screen_of(sys.stdout)
    say(*(fitted(columns, table, screen.width) if screen else plain(columns, table)))
    return {columns[at].heading for at in without_room(columns, table, screen.width if screen else None)}


def named(name: str) -> str:
    """A name that begins a line: in quotes where it is not made of what names are made of."""
    return name if not name or _NAME.fullmatch(name) else f'"{one_line(name)}"'


def say_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Name and value, one per line; empty values are left out."""
    from cli.drawing.fields import in_fields

    say(*in_fields(fields))


def say_document(text: str) -> None:
    """A text made for a place elsewhere, as a comment is: for a program as it is, for a person line by line."""
    if sys.stdout.isatty():
        say(*prefixed(text))
    else:
        _put(sys.stdout, text)


def hand_over(pieces: Iterable[bytes]) -> None:
    """Bytes for a program, as they are. Never for a terminal."""
    assert not sys.stdout.isatty()
    flush()
    with _printing():
        sys.stdout.buffer.writelines(pieces)


def draw(text: str, stream: "TextIO") -> None:
    """What `cli.drawing` draws in place, at once: each line in it has been through `one_line`."""
    with _printing():
        stream.write(text)
        stream.flush()


def coloured(text: str, colour: int | None) -> str:
    """A line for `page`, in our colour and nobody else's."""
    line = one_line(text)
    return _COLOUR.format(colour, line) if colour is not None else line


def page(lines: Iterator[str]) -> None:
    """Through the person's pager, which may be left before the end; without one, straight to the terminal.

    The lines come from `coloured`: nothing else may be in them.
    """
    from cli.drawing import pager

    ended = (f"{line}\n" for line in lines)
    if pager.command():
        pager.run(ended)
    else:
        for line in ended:
            _put(sys.stdout, line)


@contextmanager
def in_pages() -> Iterator[None]:
    """What is said meanwhile is kept, and shown in the end: through the pager, where it is taller than the terminal."""
    global _kept
    _kept = []
    try:
        yield
    finally:
        text, _kept = "".join(_kept), None
        _show(text)


def pages_elsewhere(show: Callable[[str], None]) -> None:
    """This process carries out what was typed in another one: that one shows what needs a pager."""
    global _elsewhere
    _elsewhere = show


def _show(text: str) -> None:
    from cli.drawing import pager

    screen = screen_of(sys.stdout)
    if screen is None or not pager.is_tall(text, screen) or not pager.command():
        _put(sys.stdout, text)
        return
    flush()
    paged = pager.for_pager(text)
    _elsewhere(paged) if _elsewhere else pager.run([paged])


def asked(question: str, default: str | None = None) -> str:
    """What the person types."""
    import typer

    with _above():
        return str(typer.prompt(one_line(question), default=default, show_default=False, err=True)).strip()


def confirmed(question: str, *, default: bool = False) -> bool:
    """Yes or no; the default is what Enter means."""
    import typer

    with _above():
        return typer.confirm(one_line(question), default=default, err=True)


def tell_error(error: "ServiceError") -> None:
    """What is wrong, and the next command. Lines that a message quotes, of git perhaps, stand below it."""
    from workflows.model.errors import Commands

    hint = error.hint
    each = hint.each if isinstance(hint, Commands) and hint.each else (hint,)
    tell_fault(error.message, error.code, each)


def tell_fault(message: str, code: str, commands: Sequence[str], usage: str = "") -> None:
    """The one form of an error: a sentence, how the command is typed, what to type next. `code` is for programs."""
    message, commands = _without_secrets(message), [_without_secrets(command) for command in commands if command]
    if _for_programs:
        told = {"error": message, "code": code, "hint": "\n".join(commands)}
        tell(_json_for(sys.stderr, json.dumps(told, ensure_ascii=False)))
        return
    first, *more = visible(message).split("\n")
    tell(Line(Piece("error:", Look.STUCK), f" {first}", below="  " + FOLDED))
    tell(*(prefixed("\n".join(more)) if more else ()))
    tell(*([f"usage: {usage}"] if usage else ()))
    heads = [Piece("try:", Look.STRONG), *[Piece("    ")] * len(commands)]
    tell(*(Line(head, f" {command}") for head, command in zip(heads, commands, strict=False)))


def _without_secrets(text: str) -> str:
    """An error quotes what was typed, and ends in logs and scrollbacks (ruling N7)."""
    from activities.redaction.redacted import redacted

    return redacted(text)


def flush() -> None:
    """Have all that was said written. Who does not read it any more is no fault."""
    with suppress(BrokenPipeError), _printing():
        sys.stdout.flush()
    with suppress(OSError):
        sys.stderr.flush()


def _json_for(stream: "TextIO", document: str) -> str:
    """With nothing unseen in it, and nothing that the stream cannot carry."""
    shown = in_json(document)
    try:
        shown.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return _OTHERS.sub(lambda found: json.dumps(found[0])[1:-1], shown)
    return shown


def _above() -> AbstractContextManager[None]:
    return _below.aside() if _below is not None else nullcontext()


@contextmanager
def _printing() -> Iterator[None]:
    """A disk that is full, a stream that is closed: what was asked for is done, and nobody has seen it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        from workflows.model.errors import ServiceError

        why = "standard output is closed" if error.errno == errno.EBADF else str(error.strerror)
        raise ServiceError(f"what was to be printed could not be written: {why}") from None


def _put(stream: "TextIO", text: str) -> None:
    if _kept is not None:
        _kept.append(text)
        return
    with _printing(), _above():
        stream.write(text)
        if _below is not None:
            stream.flush()


def _shown(stream: "TextIO", lines: Iterable[str]) -> str:
    """As text, or drawn where there is a terminal."""
    screen = screen_of(stream)
    if screen is None:
        return "".join(f"{one_line(line)}\n" for line in lines)
    return "".join(f"{row}\n" for line in lines for row in drawn(line, screen))
