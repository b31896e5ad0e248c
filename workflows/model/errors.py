"""Errors for people: a class for each exit code (ruling K6), with a sentence and the next command."""

import copyreg
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeVar


class Commands(str):
    """A hint that consists of several commands. As text, they are aligned below each other, to follow `try: `. A
    command line that knows this class prints only these lines as commands.
    """

    commands: tuple[str, ...]

    def __new__(cls, *commands: str) -> Self:
        hint = super().__new__(cls, "\n     ".join(commands))
        hint.commands = commands
        return hint


class ServiceError(Exception):
    """An error that the caller can act on. `hint` is the next command, or `Commands`."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1
    status: ClassVar[int] = 500
    argument: str = ""
    """The argument that is wrong, so that a form can show the error beside its field; empty if the error is not about
    one argument.
    """
    correction: tuple[str, str] | None = None
    """The unknown name of the call, and the known name that was probably meant."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the instance without its constructor: subclasses take other arguments."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(ServiceError):
    """The call itself is wrong: one of its options, ids or values."""

    code = "usage"
    exit_code = 2
    status = 400


class RefusedError(ServiceError):
    """A gate or a rule refuses the call; nothing was changed."""

    code = "refused"
    exit_code = 3
    status = 409


class NotFoundError(ServiceError):
    """The thing that the call names does not exist."""

    code = "not_found"
    exit_code = 4
    status = 404


class UnreachableError(ServiceError):
    """Temporal or another part cannot be reached; nothing was recorded."""

    code = "unreachable"
    exit_code = 5
    status = 503


@contextmanager
def argument(name: str) -> Iterator[None]:
    """Set the argument of every ServiceError that the block raises, unless the error names one itself."""
    try:
        yield
    except ServiceError as error:
        error.argument = error.argument or name
        raise


_Error = TypeVar("_Error", bound=ServiceError)


def with_nearest(error: _Error, name: str, known: Iterable[str]) -> _Error:
    """Add the close known name, if there is one, to an error about an unknown name."""
    from workflows.contract.faults import nearest  # imported late: it loads pydantic

    near = nearest(name, known)
    return with_correction(error, name, near) if near else error


def with_correction(error: _Error, name: str, meant: str) -> _Error:
    """Add the known name that was meant by an unknown one to the error about it."""
    error.message += f'; did you mean "{meant}"?'
    error.correction = (name, meant)
    return error
