"""The one way out of the command line: whatever is printed or asked goes through here (ruling N6).

Text of agents and of strangers is part of what is shown. Nothing in it reaches the terminal unseen, and none of its
lines looks like one of ours: what `say` is given are lines, an end of a line in one is shown as an escape, and texts
that have lines of their own go through `prefixed` first.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from workflows.contract.visible import in_json, one_line, prefixed, visible

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TextIO

    from workflows.model.errors import ServiceError

_UP = "\x1b[{}A\x1b[J"
"""Back to the first line of a view, and clear from there."""
_NAME = re.compile(r"[\w@/+.,#-]+(?: ago| days| said)?")
_COLOUR = "\x1b[{}m{}\x1b[0m"


def say(*lines: str) -> None:
    """Lines to the person; an empty one when there is none."""
    _write(sys.stdout, lines or ("",))


def tell(*lines: str) -> None:
    """Lines beside the result, which alone goes to standard output."""
    _write(sys.stderr, lines)
    sys.stderr.flush()


def say_json(value: Any) -> None:
    """One JSON document."""
    say_json_text(json.dumps(value, indent=2, ensure_ascii=False))


def say_json_line(value: Any) -> None:
    """One JSON document on a line of its own, for programs that read line by line."""
    say_json_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def say_json_text(document: str) -> None:
    """A JSON document that is text already."""
    sys.stdout.write(in_json(document) + "\n")


def say_table(headings: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> None:
    """Aligned columns, or a sentence where there is nothing to show."""
    table = [list(headings), *([named(first), *map(one_line, rest)] for first, *rest in rows)]
    if len(table) == 1:
        say(empty)
        return
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    say(*("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table))


def named(name: str) -> str:
    """A name that begins a line: in quotes where it is not made of what names are made of."""
    return name if not name or _NAME.fullmatch(name) else f'"{one_line(name)}"'


def say_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Name and value, one per line; empty values are left out."""
    say(*in_fields(fields))


def in_fields(fields: Iterable[tuple[str, object]]) -> Iterator[str]:
    """The lines of that: a value that has several stands below its name."""
    shown = [(name, str(value)) for name, value in fields if value not in (None, "", (), [])]
    width = max((len(one_line(name)) for name, _ in shown), default=0)
    for name, value in shown:
        if "\n" in value.rstrip("\n"):
            yield from (one_line(name), *prefixed(value))
        else:
            yield f"{one_line(name).ljust(width)}  {value.rstrip()}"


def headed(head: str, text: str) -> list[str]:
    """A text of others behind a word of ours, or below it where it has several lines."""
    text = text.rstrip("\n")
    return [head, *prefixed(text)] if "\n" in text else [f"{head} {text}"]


def say_document(text: str) -> None:
    """A text made for a place elsewhere, as a comment is: for a program as it is, for a person line by line."""
    if sys.stdout.isatty():
        say(*prefixed(text))
    else:
        sys.stdout.write(text)


def hand_over(pieces: Iterable[bytes]) -> None:
    """Bytes for a program, as they are. Never for a terminal."""
    assert not sys.stdout.isatty()
    sys.stdout.flush()
    sys.stdout.buffer.writelines(pieces)


def redraw(lines: Sequence[str], before: int) -> None:
    """Lines in the place of those that stand there now."""
    sys.stdout.write(_UP.format(before) if before else "")
    say(*lines)


def coloured(text: str, colour: int | None) -> str:
    """A line for `page`, in our colour and nobody else's."""
    line = one_line(text)
    return _COLOUR.format(colour, line) if colour is not None else line


def page(lines: Iterator[str]) -> None:
    """Through the person's pager, which may be left before the end; without one, straight to the terminal.

    The lines come from `coloured`: nothing else may be in them.
    """
    import contextlib
    import os
    import shlex
    import shutil
    import subprocess

    ended = (f"{line}\n" for line in lines)
    command = shlex.split(os.environ.get("PAGER") or "less")
    if not command or shutil.which(command[0]) is None:
        sys.stdout.writelines(ended)
        return
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env={"LESS": "FRX", **os.environ})
    assert pager.stdin is not None
    with contextlib.suppress(BrokenPipeError), pager:
        pager.stdin.writelines(ended)


def asked(question: str, default: str | None = None) -> str:
    """What the person types."""
    import typer

    return str(typer.prompt(one_line(question), default=default, show_default=False, err=True)).strip()


def confirmed(question: str, *, default: bool = False) -> bool:
    """Yes or no; the default is what Enter means."""
    import typer

    return typer.confirm(one_line(question), default=default, err=True)


def tell_error(error: "ServiceError") -> None:
    """What is wrong, and the next command. Lines that a message quotes, of git perhaps, stand below it."""
    from workflows.model.errors import Commands

    first, *more = visible(error.message).split("\n")
    tell(f"error: {first}", *(prefixed("\n".join(more)) if more else ()))
    hint = error.hint
    first, *others = hint.each if isinstance(hint, Commands) and hint.each else (hint,)
    tell(*([f"try: {first}", *(f"     {other}" for other in others)] if hint else ()))


def tell_misuse(said: str, message: str) -> None:
    """A complaint about how a command was typed: `said` is all of it, `message` the part that may quote arguments."""
    tell(*said.replace(message, one_line(message)).rstrip("\n").split("\n"))


def tell_bug(kind: type[BaseException], bug: BaseException, at: "TracebackType | None") -> None:
    """A fault that nobody expected, as Python shows it; its message may hold anything."""
    import traceback

    first, *more = "".join(traceback.format_exception(kind, bug, at)).split("\n")
    tell(first, *prefixed("\n".join(more)))


def _write(stream: "TextIO", lines: Iterable[str]) -> None:
    stream.write("".join(f"{one_line(line)}\n" for line in lines))
