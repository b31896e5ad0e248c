"""The only output path of the command line: everything printed or asked goes through here (ruling N6).

Output contains text of agents and of strangers. None of it reaches the terminal unescaped, and none of its lines can be
mistaken for a line of the service. `say` takes single lines and escapes a line end inside one; texts of several lines
go through `prefix_lines` first. A `ScreenLine` of `cli.drawing` is drawn with escape sequences on a terminal, and is
plain text elsewhere.
"""

import errno
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Protocol

from cli.drawing.lines import FOLDED, Piece, ScreenLine, Tone
from cli.drawing.screens import rows_of, screen_of
from workflows.text.invisible import in_json, one_line, prefix_lines, visible

if TYPE_CHECKING:
    from typing import TextIO

    from cli.drawing.tables import Column
    from workflows.model.errors import ServiceError

_NAME = re.compile(r"[\w@/+.,#-]+(?: ago| days| said)?")
_PASTE_SECONDS, _PASTE_PAUSE = 2.0, 0.02
_OTHERS = re.compile(r"[^\x00-\x7f]")
AS_JSON = "--json"
_below: "Below | None" = None
_kept: list[str] | None = None
"""Output of a running command that may need the pager."""
_elsewhere: Callable[[str], None] | None = None
_for_programs = False
"""True if errors are JSON, because the command was typed with `--json`."""


class Below(Protocol):
    """Something drawn below all output, such as a progress line; it is removed while output is printed."""

    def aside(self) -> AbstractContextManager[None]:
        """Remove the drawing during the context."""


@contextmanager
def stand_below(what: Below) -> Iterator[None]:
    """Keep this drawing below all output that is printed during the context."""
    global _below
    before, _below = _below, what
    try:
        yield
    finally:
        _below = before


def remember_words(words: Sequence[str]) -> None:
    """Record the command's words: with `--json` among them, errors are printed as JSON (ruling K6)."""
    global _for_programs
    _for_programs = AS_JSON in words


def is_for_programs() -> bool:
    """Return whether errors are printed as JSON."""
    return _for_programs


def say(*lines: str) -> None:
    """Print lines to standard output; without arguments an empty one."""
    _put(sys.stdout, _text_for(sys.stdout, lines or ("",)))


def tell(*lines: str) -> None:
    """Print lines to standard error; only the result goes to standard output."""
    with suppress(OSError), _above():  # standard error is closed
        sys.stderr.write(_text_for(sys.stderr, lines))
        sys.stderr.flush()


def say_next(*commands: str) -> None:
    """Print the commands to type next, in one block below the output."""
    if commands:
        say("next:", *(f"  {command}" for command in commands))


def say_json(value: Any) -> None:
    """Print one JSON document, indented."""
    say_json_text(_document(value, indent=2))


def say_json_line(value: Any) -> None:
    """Print one JSON document on one line, for programs that read line by line."""
    say_json_text(_document(value, separators=(",", ":")))


def _document(value: Any, **how: Any) -> str:
    """Return a view, a dataclass, or a container of them as JSON."""
    from pydantic_core import to_jsonable_python

    return json.dumps(to_jsonable_python(value), ensure_ascii=False, **how)


def say_json_text(document: str) -> None:
    """Print a JSON document that is already text."""
    _put(sys.stdout, _json_for(sys.stdout, document) + "\n")


def say_table(headings: "Sequence[str | Column]", rows: Iterable[Sequence[str]], empty: str) -> set[str]:
    """Print aligned columns, or a sentence if there are no rows. On a terminal they fit its width.

    Return the headings of columns that were left out.
    """
    from cli.drawing.tables import columns_of, fit, plain, without_room

    table = [[quote_name(first), *map(one_line, rest)] for first, *rest in rows]
    if not table:
        say(empty)
        return set()
    columns, screen = columns_of(headings), screen_of(sys.stdout)
    say(*(fit(columns, table, screen.width) if screen else plain(columns, table)))
    return {columns[at].heading for at in without_room(columns, table, screen.width if screen else None)}


def quote_name(name: str) -> str:
    """Quote a name at the start of a line if it has unusual characters."""
    return name if not name or _NAME.fullmatch(name) else f'"{one_line(name)}"'


def say_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one per line; empty values are left out."""
    from cli.drawing.lines import in_fields

    say(*in_fields(fields))


def say_document(text: str) -> None:
    """Print a document for another place, such as a comment: raw to a program, line by line to a person."""
    if sys.stdout.isatty():
        say(*prefix_lines(text))
    else:
        _put(sys.stdout, text)


def hand_over(pieces: Iterable[bytes]) -> None:
    """Write raw bytes to standard output, for a program. Never call this for a terminal."""
    assert not sys.stdout.isatty()
    flush()
    with _printing():
        sys.stdout.buffer.writelines(pieces)


def draw(text: str, stream: "TextIO") -> None:
    """Write drawn text at once. Each of its lines must have been made safe by `one_line`."""
    with _printing():
        stream.write(text)
        stream.flush()


def page(lines: Iterator[str]) -> None:
    """Page lines, or print them without a pager. The person may close the pager before the last line."""
    from cli.drawing import pager

    ended = _rows(sys.stdout, lines)
    if pager.command():
        run_pager(ended)
    else:
        for line in ended:
            _put(sys.stdout, line)


@contextmanager
def in_pages() -> Iterator[None]:
    """Collect the output of the context, and print it at the end, in the pager if it is taller than the terminal."""
    global _kept
    _kept = []
    try:
        yield
    finally:
        text, _kept = "".join(_kept), None
        _show(text)


def pages_elsewhere(show: Callable[[str], None]) -> None:
    """Have this function show paged output: the command was typed in another process, and that process runs the
    pager.
    """
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
    _elsewhere(paged) if _elsewhere else run_pager([paged])


def run_pager(lines: Iterable[str]) -> None:
    """Page lines that are already safe; print them if the pager does not start."""
    from cli.drawing import pager

    try:
        pager.run(lines)
    except OSError as error:  # no program, or one of another architecture
        _put(sys.stdout, "".join(lines))
        tell(f"The pager {pager.command()[0]} does not start: {error.strerror}. Set PAGER to another one.")


def ask_text(question: str, default: str | None = None) -> str:
    """Ask a question and return the typed answer."""
    import typer

    with _above():
        _forget_keys()
        return str(typer.prompt(one_line(question), default=default, show_default=False, err=True)).strip()


def ask_yes_or_no(question: str, *, default: bool = False) -> bool:
    """Ask for yes or no; Enter means the default."""
    import typer

    with _above():
        _forget_keys()
        return typer.confirm(one_line(question), default=default, err=True)


def _forget_keys() -> None:
    """Discard keys typed before the question was shown: they were not meant for it."""
    if sys.stdin is None or not sys.stdin.isatty():
        return
    import select
    import termios
    import time

    until = time.monotonic() + _PASTE_SECONDS
    with suppress(OSError, ValueError, termios.error):  # the terminal is gone
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        while select.select([sys.stdin], [], [], 0)[0] and time.monotonic() < until:
            time.sleep(_PASTE_PAUSE)  # the rest of a paste follows as soon as there is room for it
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def tell_error(error: "ServiceError") -> None:
    """Print an error and the next command. Further lines of the message, such as git's, are quoted below it."""
    from workflows.model.errors import Commands

    hint = error.hint
    commands = hint.commands if isinstance(hint, Commands) and hint.commands else (hint,)
    tell_fault(error.message, error.code, commands)


def tell_fault(message: str, code: str, commands: Sequence[str], usage: str = "") -> None:
    """Print an error in the form of all errors: a sentence, the usage, the commands to type next. Programs read
    `code`.
    """
    message, commands = _without_secrets(message), [_without_secrets(command) for command in commands if command]
    if _for_programs:
        fault = {"error": message, "code": code, "hint": "\n".join(commands)}
        tell(_json_for(sys.stderr, json.dumps(fault, ensure_ascii=False)))
        return
    first, *more = visible(message).split("\n")
    tell(ScreenLine(Piece("error:", Tone.STUCK), f" {first}", below="  " + FOLDED))
    tell(*(prefix_lines("\n".join(more)) if more else ()))
    tell(*([f"usage: {usage}"] if usage else ()))
    heads = [Piece("try:", Tone.STRONG), *[Piece("    ")] * len(commands)]
    tell(*(ScreenLine(head, f" {command}") for head, command in zip(heads, commands, strict=False)))


def _without_secrets(text: str) -> str:
    """Redact secrets: an error quotes typed words, and ends up in logs and scrollbacks (ruling N7)."""
    from activities.redaction.redact import redact_text

    return redact_text(text)


def flush() -> None:
    """Flush all output. Ignore a closed pipe."""
    with suppress(BrokenPipeError), _printing():
        sys.stdout.flush()
    with suppress(OSError):
        sys.stderr.flush()


def _json_for(stream: "TextIO", document: str) -> str:
    """Escape invisible characters, and those the stream cannot encode."""
    shown = in_json(document)
    try:
        shown.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return _OTHERS.sub(lambda match: json.dumps(match[0])[1:-1], shown)
    return shown


def _above() -> AbstractContextManager[None]:
    return _below.aside() if _below is not None else nullcontext()


@contextmanager
def _printing() -> Iterator[None]:
    """Convert errors of writing to standard output, such as a full disk, to a ServiceError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        from workflows.model.errors import ServiceError

        why = "standard output is closed" if error.errno == errno.EBADF else str(error.strerror)
        way = "df -h ." if error.errno == errno.ENOSPC else ""
        raise ServiceError(f"the output could not be written: {why}", way) from None


def _put(stream: "TextIO", text: str) -> None:
    if _kept is not None:
        _kept.append(text)
        return
    with _printing(), _above():
        stream.write(text)
        if _below is not None:
            stream.flush()


def _text_for(stream: "TextIO", lines: Iterable[str]) -> str:
    return "".join(_rows(stream, lines))


def _rows(stream: "TextIO", lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as plain text, or as they are drawn on a terminal."""
    screen = screen_of(stream)
    for line in lines:
        yield from (f"{row}\n" for row in ((one_line(line),) if screen is None else rows_of(line, screen)))
