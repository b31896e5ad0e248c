"""A command as a person types it: in a process of its own whose streams are real terminals.

It is forked from a process that has imported everything and begun nothing, so that a hundred commands take seconds.
"""

import multiprocessing
import os
import pty
import re
import select
import sys
import tty
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper

from cli.drawing.lines import END, Tone

SECONDS = 120
OURS = re.compile(rf"\x1b\[(?:{'|'.join(filter(None, Tone))})m([^\x1b]*){re.escape(END)}")
"""A piece in one of our colours, with no other sequence in between."""
PROGRESS = re.compile(r"\r\x1b\[J(?:([⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] [^\x1b\r\n]*)\r)?")
LINK = re.compile(r"\x1b]8;;(?:https?|file)://[\w.~:/?#@!$&'()*+,;=%\[\]-]+\x1b\\([^\x1b]*)\x1b]8;;\x1b\\", re.ASCII)

forking = multiprocessing.get_context("forkserver")
forking.set_forkserver_preload(["tests.cli.everything", __name__])


@dataclass(frozen=True)
class Printed:
    """The raw output of a command."""

    code: int | None
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return (self.out + self.err).decode()

    @property
    def said(self) -> str:
        return without_ours(self.text)


def without_ours(text: str) -> str:
    """Remove our colours and links, each only as a whole: any deviation stays.

    The text of a progress line is put on lines of its own.
    """
    text = PROGRESS.sub(lambda match: f"{match[1]}\n" if match[1] else "", text)
    return LINK.sub(r"\1", OURS.sub(r"\1", text))


def nothing() -> None:
    """Do nothing before the command."""


def typed(
    words: Sequence[str],
    keys: str = "",
    before: Callable[[], None] = nothing,
    environment: Mapping[str, str] | None = None,
) -> Printed:
    """Run one command; both of its streams are terminals. At each question a line of `keys` is typed."""
    (out, program_out), (err, program_err) = pty.openpty(), pty.openpty()
    for device in (program_out, program_err):
        tty.setraw(device)
    streams = (os.ttyname(program_out), os.ttyname(program_err))
    place = dict(os.environ if environment is None else environment), os.getcwd()
    process = forking.Process(target=_run, args=(list(words), streams, place, before))
    process.start()
    output = _read(out, err, process.is_alive, (program_out, program_err), keys.splitlines(keepends=True))
    process.join(SECONDS)
    process.kill()
    return Printed(process.exitcode, output[out], output[err])


def run_in(words: list[str], terminal: str, place: tuple[dict[str, str], str], before: Callable[[], None]) -> None:
    """In the process: become a program that a shell started on its terminal, whose keys send it signals."""
    os.setsid()
    os.close(os.open(terminal, os.O_RDWR))  # the first terminal that a session opens becomes its own
    _run(words, (terminal, terminal), place, before)


def _run(
    words: list[str], streams: tuple[str, str], place: tuple[dict[str, str], str], before: Callable[[], None]
) -> None:
    """In the process: become a program that was just started in this place."""
    out, err = (os.open(name, os.O_RDWR | os.O_NOCTTY) for name in streams)
    for number, file in ((0, out), (1, out), (2, err)):
        os.dup2(file, number)
    sys.stdin, sys.stdout, sys.stderr = (
        TextIOWrapper(os.fdopen(number, mode, closefd=False), "utf-8", errors, "\n", line_buffering=True)
        for number, mode, errors in ((0, "rb", "strict"), (1, "wb", "strict"), (2, "wb", "backslashreplace"))
    )
    os.environ.clear()
    os.environ.update(place[0])
    os.chdir(place[1])
    sys.argv = ["service", *words]
    before()
    from cli.main import run

    try:
        run()
    except BaseException as bug:
        sys.excepthook(type(bug), bug, bug.__traceback__)
        sys.stderr.flush()
        os._exit(99)


def _read(out: int, err: int, lives: Callable[[], bool], ours: tuple[int, int], answers: list[str]) -> dict[int, bytes]:
    """Read until the process has ended and all its output is here. Our open side keeps the terminal from ending too
    early. An output that ends with a colon is a question: the next answer is typed.
    """
    output = {out: b"", err: b""}
    over = False
    while True:
        ready, _, _ = select.select([out, err], [], [], 0.0 if over else 0.01)
        for file in ready:
            piece = os.read(file, 65536)
            output[file] += piece
            if file == err and answers and piece.rstrip(b" ").endswith(b":"):
                os.write(out, answers.pop(0).encode())
        if over and not ready:
            break
        over = over or not lives()
    for file in (out, err, *ours):
        os.close(file)
    return output
