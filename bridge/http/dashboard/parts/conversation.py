"""The conversation on a job's page: a part of an attempt's transcript, each call of a tool with its result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import escape

from activities.agents.entries import Entry, EntryKind
from bridge.http.dashboard.frame.page import PageRequest
from bridge.operations.jobs import output
from bridge.operations.jobs.output import Log
from bridge.operations.service import Service
from workflows.contract.locate import KEY
from workflows.model.errors import ServiceError, UsageError
from workflows.text.invisible import visible

LONGEST = 2000
"""Characters of one entry's text."""

MOST_BYTES = 60_000
"""Bytes of all entries on the page."""

RAW_BYTES = 256 * 1024
"""A longer raw output is linked by its end, and by its beginning."""


@dataclass(frozen=True)
class Exchange:
    """An entry, and for a call of a tool its result."""

    key: str
    """Unique on the page, and stable while the output grows."""
    entry: Entry
    result: Entry | None = None

    @property
    def failed(self) -> bool:
        return self.entry.failed or (self.result is not None and self.result.failed)

    @property
    def is_outcome(self) -> bool:
        """Return whether this message has the job's result object, which the page shows in words."""
        return self.entry.kind is EntryKind.SAID and KEY in self.entry.text


@dataclass(frozen=True)
class Conversation:
    """The transcript of an attempt on its page, or the reason why the transcript is missing."""

    problem: str = ""
    there: str = ""
    """The command that shows it on its host, if that cannot be asked."""
    log: Log | None = None
    turns: tuple[Exchange, ...] = ()
    earlier: int | None = None
    """Offset of the entries before these."""
    is_end: bool = True
    """False if later entries are not shown."""
    raw_end: int = 0
    """Offset at which the end of the raw output begins."""


def attempt_of(asked: PageRequest) -> int | None:
    """Return the attempt that the page's address names; None means the last one."""
    return number_of(asked, "attempt")


def of_job(service: Service, job_id: str, asked: PageRequest) -> Conversation:
    """Return the part of the conversation that the page's address names, by default its end."""
    before = number_of(asked, "before")
    try:
        log = output.log(service, job_id, attempt_of(asked), before=before, longest=LONGEST)
    except ServiceError as error:
        return Conversation(error.message, error.hint if error.hint.startswith("ssh ") else "")
    shown = _within(log.entries, MOST_BYTES)
    earlier = log.earlier_cursor if len(shown) == len(log.entries) else shown[0].at
    raw_end = max(0, log.size - RAW_BYTES)
    return Conversation("", "", log, tuple(_turns(shown)), earlier, before is None, raw_end)


def number_of(asked: PageRequest, name: str) -> int | None:
    """Return a number of the page's address."""
    text = asked.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise UsageError(f"{name} must be a whole number")
    return int(text)


def _within(entries: Sequence[Entry], most: int) -> Sequence[Entry]:
    """Return the last entries that take so many bytes on the page. All entries of a line stay together."""
    size = 0
    for at in range(len(entries) - 1, -1, -1):
        size += len(escape(visible(entries[at].text + entries[at].argument)).encode("utf-8", "replace")) + 200
        if size > most:
            same = entries[at].at
            return entries[next((i for i in range(at, len(entries)) if entries[i].at != same), at + 1) :]
    return entries


def _turns(entries: Sequence[Entry]) -> list[Exchange]:
    """Join calls and results; leave out the name of the session, which a program prints first."""
    turns, calls = list[Exchange](), dict[str, int]()
    number, before = 0, -1
    for entry in entries:
        number, before = (number + 1 if entry.at == before else 0), entry.at
        call = calls.pop(entry.call, None) if entry.kind is EntryKind.RESULT and entry.call else None
        if call is not None:
            turns[call] = replace(turns[call], result=entry)
            continue
        if entry.kind is EntryKind.TOOL and entry.call:
            calls[entry.call] = len(turns)
        if entry.kind is EntryKind.NOTE and not entry.failed and entry.text.startswith(("session ", "model ")):
            continue
        turns.append(Exchange(f"{entry.at}-{number}", entry))
    return turns
