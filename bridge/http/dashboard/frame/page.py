"""Pages, actions and their forms, as the modules in `pages/` declare them. Served by: `app`, `live`."""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from bridge.http.dashboard.frame.session import DashboardSession
from bridge.http.wire.call import call_of
from bridge.http.wire.errors import TooLargeError
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError
from workflows.model.orders import signature

CHANNEL = "dashboard"
"""The channel of orders from a page."""


@dataclass(frozen=True)
class PageRequest:
    """A request for a page: path, parameters, session."""

    path: str
    session: DashboardSession
    params: Mapping[str, str] = field(default_factory=dict)
    """Parameters in the path."""
    query: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, str] = field(default_factory=dict)
    """The fields of a form that leads back to the page: because it was refused, or carries what isn't sent yet."""


@dataclass(frozen=True)
class PageView:
    """A page at a path. `look` runs in a thread of its own and returns the values for the template."""

    path: str
    template: str
    look: Callable[[Service, PageRequest], Mapping[str, object]]
    fresh_seconds: float = 15.0
    """An open page is rendered again when a row has changed, and after so many seconds."""
    fields: tuple[str, ...] = ()
    """The fields of a page that is a form: faults stand beside them, and the page does not change while it is open."""


@dataclass(frozen=True)
class Plain:
    """A plain text at a path, sent piece by piece; each piece is made in a thread of its own."""

    path: str
    pieces: Callable[[Service, PageRequest], Iterator[bytes]]


@dataclass(frozen=True)
class SubmittedForm:
    """A submitted form and its sender."""

    asked: PageRequest
    fields: Mapping[str, tuple[str, ...]]

    @property
    def actor(self) -> str:
        return self.asked.session.actor

    @property
    def actor_in_words(self) -> str:
        """The actor with the channel, for records that store both as one text."""
        return signature(self.actor, CHANNEL)

    def text(self, name: str, default: str | None = None) -> str:
        """Return the only value of a field."""
        values = self.fields.get(name, ())
        if len(values) > 1:
            raise UsageError(f"the field {name} occurs {len(values)} times in the form")
        if not values and default is None:
            raise UsageError(f"the form lacks the field {name}; load the page again")
        return values[0].replace("\r\n", "\n") if values else default or ""

    def number(self, name: str) -> int | None:
        """Return a field's whole number; None if it is empty or missing."""
        value = self.text(name, "")
        if value and (not value.isascii() or not value.isdigit() or len(value) > 9):
            raise UsageError(f"the field {name} must be a whole number")
        return int(value) if value else None

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a field that may occur several times, as ticked boxes do."""
        return self.fields.get(name, ())


@dataclass(frozen=True)
class ActionNote:
    """The outcome of one thing a person did on a page."""

    text: str
    done: bool = True
    """False if it was refused and nothing changed."""
    hint: str = ""
    """The command or step to take instead."""
    about: str = ""
    """The item it concerns, if several were acted on at once."""
    page: str = ""
    """The page of that item, if it is another one."""
    kept: str = ""
    """Text the person typed, if the page has no field for it any more."""
    argument: str = ""
    """The form's field that was wrong, if it was one."""

    @classmethod
    def of(cls, error: ServiceError) -> "ActionNote":
        """Return the note of a refusal."""
        return cls(error.message, done=False, hint=error.hint or "", argument=error.argument)


@dataclass(frozen=True)
class Done:
    """The outcome of an action: its notes, and the page to show next (the sender's own page, if empty)."""

    notes: tuple[ActionNote, ...]
    show: str = ""
    status: int = RefusedError.status
    """The HTTP status if nothing was done: the page is shown with all that was typed."""

    @property
    def is_refusal(self) -> bool:
        return not any(note.done for note in self.notes)


@dataclass(frozen=True)
class FormAction:
    """The target of a form. It returns its outcome or raises a ServiceError."""

    path: str
    act: Callable[[Service, SubmittedForm], Coroutine[Any, Any, Done]]


def success(text: str, show: str = "") -> Done:
    """Return a successful outcome with one note."""
    return Done((ActionNote(text),), show)


def nothing_here(path: str) -> NotFoundError:
    """Return the error for a path without a page."""
    return NotFoundError(f"there is no page at {path[:200]}")


MOST_BYTES = 512 * 1024
"""Size limit of a form: several times the longest answer a tree accepts."""
MOST_FIELDS = 3000


async def fields_of(request: Request) -> dict[str, tuple[str, ...]]:
    """Return every field with all its values, in the order they were sent."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise UsageError("a form must be sent as application/x-www-form-urlencoded")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise TooLargeError(f"a form may have {MOST_BYTES} bytes")
    call_of(request.scope).bytes_in = len(body)
    fields: dict[str, tuple[str, ...]] = {}
    try:
        for name, value in parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        ):
            fields[name] = (*fields.get(name, ()), value)
    except ValueError:
        raise UsageError("the form cannot be read") from None
    return fields


MOST_NOTES = 500


class Notes:
    """A cache of the newest notes, by session."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[ActionNote, ...]] = OrderedDict()

    def keep(self, session_key: str, notes: tuple[ActionNote, ...]) -> str:
        """Keep notes for the next page, and return their name."""
        name = secrets.token_hex(6)
        self._kept[session_key, name] = notes
        if len(self._kept) > MOST_NOTES:
            self._kept.popitem(last=False)
        return name

    def take(self, session_key: str, name: str) -> tuple[ActionNote, ...]:
        """Remove and return the notes, so that a reloaded page does not repeat them."""
        return self._kept.pop((session_key, name), ())
