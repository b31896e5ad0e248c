"""A reply that is lost after what was asked is done: of a git push, of a write to GitHub, of a model."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.controller import subject_of
from tests.chaos.faults.base import Base
from tests.chaos.faults.kills import TOLD
from tests.chaos.protocol import GO, Arrival, NotLandedError
from tests.github.wire import Request
from workflows.github.facts import FactKind

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

HOOK = """\
#!/bin/sh
# The references are written: the program that would say so dies, once.
[ "$1" = committed ] && [ -e "$GIT_DIR/loses-reply" ] && rm "$GIT_DIR/loses-reply" && kill -9 $PPID
exit 0
"""
ASKS = ("claim written", "run claimed", "program to be started", "program started", "command started")
PUSHES = ("folder made", "command started", "work committed")
OUTAGE = 20.0


@dataclass
class LostPush(Base):
    """The remote of the repository takes a push, and dies before it says so."""

    name: str = "lost reply push"
    part: str = "hub"
    needs: frozenset[str] = frozenset({"hub"})
    seconds: float = OUTAGE

    def fits(self, station: str) -> bool:
        return station in PUSHES

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        hook = stack.hub / "hooks" / "reference-transaction"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOOK)
        hook.chmod(0o755)
        self._trap(stack).touch()
        return GO

    def _trap(self, stack: "Stack") -> Path:
        return stack.hub / "loses-reply"

    def proof(self, stack: "Stack") -> str:
        if self._trap(stack).exists():
            self._trap(stack).unlink()
            raise NotLandedError("nothing was pushed")
        return "the remote died with its references written"


@dataclass
class LostComment(Base):
    """GitHub takes the next comment, and its reply is lost: a gateway answers in its place."""

    name: str = "lost reply GitHub"
    part: str = "github"
    seconds: float = OUTAGE
    _lost: list[str] = field(default_factory=list)

    def fits(self, station: str) -> bool:
        return station.startswith(TOLD) and not station.endswith(FactKind.END)  # after the end, no comment is posted

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        root = subject_of(arrival.subject).encode()

        def is_ours(request: Request) -> bool:
            ours = request.line.startswith("POST ") and request.line.endswith("/comments") and root in request.body
            self._lost += [request.line] if ours and not self._lost else []
            return ours

        stack.github.after_write(is_ours)
        return GO

    def proof(self, stack: "Stack") -> str:
        if not self._lost:
            raise NotLandedError("no comment was posted")
        return f"the reply to {self._lost[0]} was lost"


@dataclass
class LostAnswer(Base):
    """The model answers, and the line breaks amid its reply."""

    name: str = "lost reply model"
    part: str = "agent"
    needs: frozenset[str] = frozenset({"model"})
    seconds: float = OUTAGE
    _tree: str = ""
    _lost: set[str] = field(default_factory=set)

    def fits(self, station: str) -> bool:
        return station in ASKS

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        self._tree = subject_of(arrival.subject)
        stack.model.loses.add(self._tree)
        self._lost = stack.model.lost
        return GO

    def proof(self, stack: "Stack") -> str:
        if self._tree not in self._lost:
            raise NotLandedError("the model was not asked")
        return "a reply of the model was cut off"


FAULTS = (LostPush, LostComment, LostAnswer)
