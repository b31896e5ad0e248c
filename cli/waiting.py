"""Waiting for a tree on a terminal: shows its questions, offers to answer them, and says how to come back."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from cli.asking import ask, shown
from cli.faults import INTERRUPTED, interrupted
from cli.output import is_for_programs, tell, tell_error, tell_fault

if TYPE_CHECKING:
    from bridge.operations.service import Service
    from workflows.model.rows import RoundRecord


class Asker:
    """Shows each round once, and again when questions have joined. On a terminal it offers to answer."""

    def __init__(self, service: "Service", *, json: bool) -> None:
        self._service = service
        self._offers = not json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        self._seen: set[tuple[str, str]] = set()

    def has_news(self, root: str) -> bool:
        """Return whether the tree has a round that was not shown yet."""
        return bool(self._news(root))

    def look(self, root: str) -> None:
        """Show new rounds, and offer to answer them."""
        for each in self._news(root):
            self._seen.add((each.round_id, each.digest))
            tell("", *shown(each, briefly=self._offers))
            if self._offers:
                self._offer(each)

    def _news(self, root: str) -> "list[RoundRecord]":
        from bridge.operations.jobs import rounds

        return [each for each in rounds.open_of(self._service, root) if (each.round_id, each.digest) not in self._seen]

    def _offer(self, waiting: "RoundRecord") -> None:
        from bridge.operations.orders.resume import resume
        from cli.calling import for_people
        from workflows.model.errors import ServiceError

        for_people("resume")
        tell("Answer now, or press Enter for later.")
        said = ask(waiting, may_wait=True)
        if said is None:
            tell(f"later: service resume {waiting.coordinator_id}")
            return
        order = said.order(waiting.coordinator_id, waiting.number, waiting.digest)
        try:
            tell(*asyncio.run(resume(self._service, order)).message.split("\n"))
        except ServiceError as error:
            tell_error(error)


@contextmanager
def left_alone(*commands: str) -> Iterator[None]:
    """On Ctrl-C, stop waiting and print the commands that return to the work, which continues."""
    try:
        yield
    except (KeyboardInterrupt, typer.Abort):
        if is_for_programs():
            interrupted(*commands)
        else:
            tell("", "It goes on without you. To come back:", *(f"  {each}" for each in commands))
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def if_interrupted(says: str, *commands: str) -> Iterator[None]:
    """On Ctrl-C, print the state of the work and the commands to type."""
    try:
        yield
    except (KeyboardInterrupt, typer.Abort):
        if not is_for_programs():
            tell("")  # below the ^C
        tell_fault(f"interrupted: {says}", "interrupted", commands)
        raise SystemExit(INTERRUPTED) from None
