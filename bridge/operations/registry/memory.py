"""Memory (ruling K2): people write and confirm, agents propose from their jobs, everybody recalls confirmed entries."""

import os
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from activities.redaction.kept_secrets import without_words
from activities.redaction.redact import redact_text
from activities.store.registry import memory_rows
from activities.store.registry.memory_rows import NewMemory, Sought
from bridge.operations.jobs import jobs
from bridge.operations.registry import agents, repos
from bridge.operations.service import Service
from workflows.contract.unstorable import unclean
from workflows.model.errors import NotFoundError, RefusedError, UsageError, with_nearest
from workflows.policy.memory import CONTENT_LIMIT, KEY_LIMIT, Entry, MemoryState, Recalled

_ID = re.compile(r"mem-([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class NewEntry:
    """A person's new entry: for one agent or shared by all, about one repository or in general."""

    key: str
    content: str
    agent: str | None = None
    repo: str | None = None


@dataclass(frozen=True)
class Proposal:
    """An agent's proposal. Its job determines the entry's owner and repository."""

    job_id: str
    key: str
    content: str
    shared: bool = False
    general: bool = False


@dataclass(frozen=True)
class MemoryFilter:
    """The filter of `memory list`."""

    agent: str | None = None
    shared: bool = False
    repo: str | None = None
    state: str | None = None
    limit: int = 50


class Recall(BaseModel):
    """A query (ruling J8). Without an agent and without `shared`, everybody's entries are searched."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        json_schema_extra={
            "not": {
                "required": ["agent", "shared"],
                "properties": {"agent": {"type": "string"}, "shared": {"const": True}},
            }
        },
    )

    query: str = Field(description="Any text; entries with any of its words are found.")
    repo: str | None = Field(None, description="Entries about this repository, and general ones.")
    agent: str | None = Field(None, description="This agent's own entries, and shared ones.")
    shared: bool = Field(False, description="Shared entries only; not together with agent.")
    limit: Annotated[int, Field(ge=1, le=100)] = 15


class Recollection(BaseModel):
    """The entries found, best first."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    entries: tuple[Recalled, ...]


def add(service: Service, new: NewEntry, actor: str) -> Entry:
    """Write a person's entry: confirmed at once, even if it was pending or retired before."""
    _a_person_decides()
    if new.repo is not None:
        repos.get(service, new.repo)
    if new.agent is not None:
        agents.get(service, new.agent)
    written = NewMemory(new.agent, new.repo, _key(new.key), _content(new.content), actor)
    return memory_rows.write(service.store, written, confirmed_by=actor)


def propose(service: Service, proposal: Proposal) -> Entry:
    """Write a job's proposal: pending until a person confirms it; a confirmed or retired entry keeps its state."""
    job = jobs.get(service, proposal.job_id)
    written = NewMemory(
        # A throwaway worker is gone after its job, so its entries are shared.
        agent=None if proposal.shared or job.ephemeral else job.agent,
        repo=None if proposal.general else job.repo,
        key=_key(without_words(proposal.key)),
        content=_content(without_words(proposal.content)),
        author=job.agent,
        job_id=job.job_id,
    )
    return memory_rows.write(service.store, written)


def find(service: Service, wanted: MemoryFilter) -> list[Entry]:
    """Return the newest entries that match."""
    if wanted.state is not None and wanted.state not in list(MemoryState):
        error = UsageError(f"{wanted.state!r} is not a state of memory; they are {', '.join(MemoryState)}")
        raise with_nearest(error, wanted.state, MemoryState)
    _not_both(wanted.agent, wanted.shared)
    state = MemoryState(wanted.state) if wanted.state else None
    return memory_rows.find(service.store, Sought(wanted.agent, wanted.shared, wanted.repo, state), wanted.limit)


def get(service: Service, entry_id: str) -> Entry:
    """Return one entry; raise `NotFoundError` if it does not exist."""
    return _existing(entry_id, memory_rows.get(service.store, _number(entry_id)))


def confirm(service: Service, entry_id: str, actor: str) -> Entry:
    """Confirm an entry, so that it can be recalled."""
    _a_person_decides()
    return _existing(entry_id, memory_rows.decide(service.store, _number(entry_id), MemoryState.CONFIRMED, actor))


def retire(service: Service, entry_id: str, actor: str) -> Entry:
    """Retire an entry: it is no longer recalled, but stays stored so that it isn't proposed again."""
    _a_person_decides()
    return _existing(entry_id, memory_rows.decide(service.store, _number(entry_id), MemoryState.RETIRED, actor))


def decide(service: Service, entry_id: str, seen: str, wanted: MemoryState, actor: str) -> Entry:
    """Confirm or retire an entry as it was `seen`; refused when somebody else has decided since."""
    entry = get(service, entry_id)
    if entry.state not in (seen, wanted):
        who = f" by {entry.decided_by}" if entry.decided_by else ""
        raise RefusedError(f"{entry_id} was {entry.state}{who} meanwhile", f"service memory show {entry_id}")
    return (confirm if wanted is MemoryState.CONFIRMED else retire)(service, entry_id, actor)


def recall(service: Service, wanted: Recall) -> Recollection:
    """Return the confirmed entries that match, best first (ruling J8). Any text is a valid query; one without words
    finds nothing.
    """
    _not_both(wanted.agent, wanted.shared)
    if wanted.repo is not None:
        repos.get(service, wanted.repo)
    if wanted.agent is not None:
        agents.get(service, wanted.agent)
    return Recollection(
        entries=tuple(
            memory_rows.recall(
                service.store,
                wanted.query,
                agent=wanted.agent,
                shared=wanted.shared,
                repo=wanted.repo,
                limit=wanted.limit,
            )
        )
    )


def _a_person_decides() -> None:
    """Raise if this process has the environment of an agent's job. An agent could evade this check; it only prevents
    mistakes.
    """
    if job_id := os.environ.get("SERVICE_JOB_ID"):
        raise RefusedError(
            f"memory is confirmed and retired by people, and this is the job {job_id}",
            'service memory propose KEY "CONTENT"',
        )


def _not_both(agent: str | None, shared: bool) -> None:
    if agent is not None and shared:
        raise UsageError(
            "agent and shared cannot be given together; an agent recalls the shared entries anyway", "leave out one"
        )


def _key(key: str) -> str:
    key = redact_text(_fit("key", key.strip(), KEY_LIMIT))
    if len(key.splitlines()) > 1:
        raise UsageError("the key has more than one line; it names what the content says", _EXAMPLE)
    return key


def _content(content: str) -> str:
    return redact_text(_fit("content", content.strip(), CONTENT_LIMIT))


_EXAMPLE = 'service memory add "deploy" "make deploy, from main only"'


def _fit(what: str, text: str, limit: int) -> str:
    if not text:
        raise UsageError(f"the {what} is empty", _EXAMPLE)
    if len(text) > limit:
        raise UsageError(f"the {what} has {len(text):,} characters; at most {limit:,} are kept", "say it shorter")
    for path, sentence in unclean(text, f"the {what}"):
        raise UsageError(f"{path} {sentence}", "leave it out")
    return text


def _number(entry_id: str) -> int:
    match = _ID.fullmatch(entry_id)
    if not match:
        raise UsageError(f"{entry_id!r} is not the id of a memory; they look like mem-12", "service memory list")
    return int(match[1])


def _existing(entry_id: str, entry: Entry | None) -> Entry:
    if entry is None:
        raise NotFoundError(f"no memory {entry_id}", "service memory list")
    return entry
