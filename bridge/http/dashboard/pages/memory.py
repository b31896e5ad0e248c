"""The page of memory: proposed entries are decided and confirmed ones found (rulings K2, M4)."""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import ActionNote, Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.operations.registry import agents, memory, repos
from bridge.operations.registry.memory import MemoryFilter, NewEntry, Recall
from bridge.operations.service import Service
from workflows.model.errors import ServiceError, UsageError
from workflows.policy.memory import CONTENT_LIMIT, KEY_LIMIT, Entry, MemoryState

MOST_LISTED = 100
VERBS = {"confirm": MemoryState.CONFIRMED, "retire": MemoryState.RETIRED}


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    query = asked.query.get("q", "").strip()
    agent, repo = asked.query.get("agent") or None, asked.query.get("repo") or None
    return {
        "title": "Memory",
        "pending": memory.find(service, MemoryFilter(state=MemoryState.PENDING, limit=MOST_LISTED)),
        "confirmed": _confirmed_entries(service, query, agent, repo),
        "query": query,
        "agent": agent or "",
        "repo": repo or "",
        "agents": [agent.worker.name for agent in agents.every(service)],
        "repos": [repo.name for repo in repos.every(service)],
        "most_listed": MOST_LISTED,
        "key_limit": KEY_LIMIT,
        "content_limit": CONTENT_LIMIT,
    }


def _confirmed_entries(service: Service, query: str, agent: str | None, repo: str | None) -> list[Entry]:
    """Return the best matches of a query; without one, the newest entries."""
    if query:
        wanted = Recall(query=query, repo=repo, agent=agent, limit=MOST_LISTED)
        return list(memory.recall(service, wanted).entries)
    return memory.find(service, MemoryFilter(agent, repo=repo, state=MemoryState.CONFIRMED, limit=MOST_LISTED))


async def _decide(service: Service, form: SubmittedForm) -> Done:
    """Confirm or retire each chosen entry; a refusal does not affect the others."""
    wanted = VERBS.get(form.text("do"))
    if wanted is None:
        raise UsageError("an entry is confirmed or retired")
    chosen = form.all("entry")
    if not chosen:
        raise UsageError("nothing is chosen; tick the entries first")
    seen, actor = form.text("seen"), form.actor
    return Done(tuple(_decide_entry(service, entry_id, seen, wanted, actor) for entry_id in dict.fromkeys(chosen)))


def _decide_entry(service: Service, entry_id: str, seen: str, wanted: MemoryState, actor: str) -> ActionNote:
    try:
        entry = memory.decide(service, entry_id, seen, wanted, actor)
    except ServiceError as error:
        return ActionNote(error.message, done=False, hint=error.hint or "", about=entry_id)
    return ActionNote(f"{entry.state} by {actor}", about=entry_id)


async def _add(service: Service, form: SubmittedForm) -> Done:
    new = NewEntry(form.text("key"), form.text("content"), form.text("agent") or None, form.text("repo") or None)
    entry = memory.add(service, new, form.actor)
    return success(f"{entry.id} is {entry.state}")


PAGES = (PageView("/memory", "memory.html", _look),)
ACTIONS = (FormAction("/memory/decide", _decide), FormAction("/memory/add", _add))
