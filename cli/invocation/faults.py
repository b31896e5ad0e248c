"""Reporting a command's error: a sentence, a code for programs, an exit code, never a traceback (K6)."""

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING

from typer import Abort, BadParameter

from cli.drawing.output import is_for_programs, tell, tell_error, tell_fault
from cli.invocation import help_texts
from cli.invocation.exit_codes import INTERRUPTED
from cli.invocation.parameters import kinds
from workflows.model.errors import ServiceError, UnreachableError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from typer import TyperException

BUG = "this is an internal error of the service"
_LARGEST = 1024 * 1024
_OF_THE_SYSTEM = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE),
    *(errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
}
"""Errors of the machine for any command, such as a full disk, a read-only file system or a missing permission."""


def answer(fault: BaseException) -> int:
    """Print the error, and return the exit code."""
    if isinstance(fault, KeyboardInterrupt):
        return tell_interrupted()
    if isinstance(fault, BrokenPipeError):
        return 0  # the reader has closed the pipe and wants no more
    known = fault if isinstance(fault, ServiceError) else _service_error(fault)
    if known is not None:
        tell_error(known)
        return known.exit_code
    tell_fault(f"{BUG}: {_in_words(fault)}; {_keep_traceback(fault)}", "fault", ["service doctor"])
    return 1


def tell_interrupted(*commands: str) -> int:
    """Print the commands that show the work, which continues, and return the exit code of Ctrl-C."""
    if commands:
        tell_fault("interrupted", "interrupted", commands)
    return INTERRUPTED


@contextmanager
def left_alone(*commands: str) -> Iterator[None]:
    """On Ctrl-C during the context, stop waiting and print the commands that show the work, which continues."""
    try:
        yield
    except (KeyboardInterrupt, Abort):
        if is_for_programs():
            tell_interrupted(*commands)
        else:
            tell("", "It goes on without you. To come back:", *(f"  {each}" for each in commands))
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def if_interrupted(says: str, *commands: str) -> Iterator[None]:
    """On Ctrl-C during the context, print this sentence and the commands to type."""
    try:
        yield
    except (KeyboardInterrupt, Abort):
        if not is_for_programs():
            tell("")  # below the ^C
        tell_fault(f"interrupted: {says}", "interrupted", commands)
        raise SystemExit(INTERRUPTED) from None


def tell_misuse(misuse: "TyperException", message: str, commands: Sequence[str]) -> int:
    """Print a usage error of Typer in the form of all errors, or the help if nothing was typed.

    `message` replaces Typer's own, unless it is empty.
    """
    message = message or misuse.format_message()
    context = getattr(misuse, "ctx", None)
    if type(misuse).__name__ == "NoArgsIsHelpError":
        tell(*map(help_texts.line, help_texts.without_colours(message).rstrip("\n").split("\n")))
    else:
        usage = help_texts.usage_of(context) if context else ""
        tell_fault(message, "usage", commands, usage)
    return misuse.exit_code


def wrong_number(misuse: "TyperException") -> tuple[str, str] | None:
    """Return the message and the typed value if that is not a number or out of range; None for any other error."""
    if type(misuse) is not BadParameter or misuse.param is None or misuse.ctx is None:
        return None
    kind = kinds(misuse.ctx.command.callback).get(misuse.param.name or "")
    if kind is None or kind.type not in (int, float):
        return None
    invalid = getattr(misuse.__cause__, "errors", None)  # newer releases of Typer validate by pydantic
    typed = str(invalid()[0]["input"] if invalid else misuse.message.partition(" is not ")[0].strip("'"))
    return f"Invalid value for '{misuse.param.opts[0]}': {kind.refusal(typed)}.", typed


def open_streams() -> None:
    """Open /dev/null for missing standard streams, before another file can get their descriptor.

    Have characters escaped that a terminal cannot show, instead of raising an error.
    """
    for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            file = os.open(os.devnull, flags | os.O_CLOEXEC)
            if file != number and not _is_open(number):
                file = os.dup2(file, number)
            setattr(sys, name, open(file, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _service_error(fault: BaseException) -> ServiceError | None:
    """Convert a known error of the machine or the store to a ServiceError, which prints no traceback; None for any
    other.
    """
    if isinstance(fault, OSError) and fault.errno == errno.EBADF and not fault.filename:
        return ServiceError("the output could not be written: standard output is closed")
    if isinstance(fault, FileNotFoundError) and not os.stat(".").st_nlink:
        return UsageError("the folder that you are in no longer exists", "cd")
    if isinstance(fault, OSError) and fault.errno in _OF_THE_SYSTEM:
        where = f": {fault.filename}" if fault.filename else ""
        return ServiceError(f"this machine refused it: {fault.strerror}{where}", "service doctor")
    database = sys.modules.get("sqlalchemy.exc")
    if database is not None and isinstance(fault, database.OperationalError):
        return UnreachableError(f"the store cannot be used: {fault.orig}", "service doctor")
    return None


def _in_words(fault: BaseException) -> str:
    from activities.redaction.redact import redact_text

    message = redact_text(str(fault)).split("\n")[0][:400]
    return f"{type(fault).__name__}: {message}" if message else type(fault).__name__


def _keep_traceback(fault: BaseException) -> str:
    """Write the traceback to a log, and return a phrase with the log's path."""
    import time
    import traceback

    from activities.redaction.redact import redact_text

    trace = redact_text("".join(traceback.format_exception(fault)))
    entry = f"{time.strftime('%Y-%m-%d %H:%M:%S%z')}\n{trace}\n"
    for place in (_in_home, _elsewhere):
        try:
            return f"the details are in {place(entry)}"
        except (OSError, ServiceError):
            continue
    return "the details could not be saved"


def _in_home(entry: str) -> "Path":
    """Append this text to the home's `faults.log`, readable by its owner alone, with one rotated file. Return its
    path.
    """
    from activities.settings.home import Home

    folder = Home.locate().ensure().logs
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / "faults.log"
    if path.exists() and path.stat().st_size > _LARGEST:
        path.replace(path.with_suffix(".log.1"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(entry)
    return path


def _elsewhere(entry: str) -> str:
    import tempfile

    file, path = tempfile.mkstemp(prefix="service-fault-", suffix=".log")
    with open(file, "w", encoding="utf-8", errors="backslashreplace") as kept:
        kept.write(entry)
    return path
