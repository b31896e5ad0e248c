"""A page and an action, as the modules in `pages/` declare them. How they are served: `app`, `live`."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.http.dashboard.frame.session import Session
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError, UsageError
from workflows.model.orders import signed

CHANNEL = "dashboard"
"""How what is said on a page reaches a tree."""


@dataclass(frozen=True)
class Asked:
    """One request for a page: where, what for, by whom."""

    path: str
    session: Session
    params: Mapping[str, str] = field(default_factory=dict)
    """What stands in the path."""
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """What stands at a path. `look` runs in a thread of its own and returns what the template needs."""

    path: str
    template: str
    look: Callable[[Service, Asked], Mapping[str, object]]
    fresh_seconds: float = 15.0
    """An open page is looked at again when a row has changed, and after so many seconds."""


@dataclass(frozen=True)
class Form:
    """What was sent by a form, and by whom."""

    asked: Asked
    fields: Mapping[str, tuple[str, ...]]

    @property
    def actor(self) -> str:
        return self.asked.session.actor

    @property
    def signed(self) -> str:
        """The same, with the channel, for what records who did it in words only."""
        return signed(self.actor, CHANNEL)

    def text(self, name: str, default: str | None = None) -> str:
        """A field's one value."""
        values = self.fields.get(name, ())
        if len(values) > 1:
            raise UsageError(f"the field {name} stands {len(values)} times in the form")
        if not values and default is None:
            raise UsageError(f"the form lacks the field {name}; load the page again")
        return values[0].replace("\r\n", "\n") if values else default or ""

    def number(self, name: str) -> int | None:
        """A field's whole number; None where it is empty or missing."""
        value = self.text(name, "")
        if value and (not value.isascii() or not value.isdigit() or len(value) > 9):
            raise UsageError(f"the field {name} must be a whole number")
        return int(value) if value else None

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field that may stand several times, as boxes that are ticked do."""
        return self.fields.get(name, ())


@dataclass(frozen=True)
class Note:
    """What became of one thing a person did on a page."""

    text: str
    done: bool = True
    """False: it was refused, and nothing changed."""
    hint: str = ""
    """What to type or do instead."""
    about: str = ""
    """Of several things done at once: which one."""
    kept: str = ""
    """What the person had typed, where the page has no field for it any more."""


@dataclass(frozen=True)
class Done:
    """What an action came to: one note or several, and the page to show then (the one it was sent from, if empty)."""

    notes: tuple[Note, ...]
    show: str = ""
    status: int = RefusedError.status
    """Of the page that says that all of it was refused."""

    @property
    def refused(self) -> bool:
        return not any(note.done for note in self.notes)


@dataclass(frozen=True)
class Action:
    """What a form may be sent to. It raises an error of ours, or says what it did."""

    path: str
    act: Callable[[Service, Form], Coroutine[Any, Any, Done]]


def done(text: str, show: str = "") -> Done:
    """It is done."""
    return Done((Note(text),), show)


def nothing_here(path: str) -> NotFoundError:
    """For an address no page stands at."""
    return NotFoundError(f"there is no page at {path[:200]}")
