"""Reactions on comments and statuses of commits on the Hub."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.github.router import RefusedError, invalid, paged
from tests.github.wire import Json, Reply, Request

CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
STATES = ("error", "failure", "pending", "success")


def _ids() -> Iterator[int]:
    return itertools.count(271_828_182, 17)


@dataclass
class Reactions:
    """The reactions of each comment, oldest first."""

    of: dict[int, list[Json]] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=_ids)

    def add(self, comment: int, user: Json, request: Request, now: str) -> Reply:
        """Return 201 and a new reaction, or 200 and this person's existing one."""
        content = request.json().get("content")
        if content not in CONTENTS:
            raise invalid("Reaction", "content")
        for known in self.of.setdefault(comment, []):
            if (known["user"]["id"], known["content"]) == (user["id"], content):
                return Reply(200, known)
        number = next(self.ids)
        made = {"id": number, "node_id": f"REA_lAHO{number}", "user": user, "content": content, "created_at": now}
        self.of[comment].append(made)
        return Reply(201, made)

    def listed(self, comment: int, request: Request) -> Reply:
        wanted = request.query.get("content")
        return paged(request, [each for each in self.of.get(comment, []) if wanted in (None, each["content"])])

    def remove(self, comment: int, reaction: int) -> Reply:
        kept = [each for each in self.of.get(comment, []) if each["id"] != reaction]
        if len(kept) == len(self.of.get(comment, [])):
            raise RefusedError(404, "Not Found")
        self.of[comment] = kept
        return Reply(204)

    def summary(self, comment: int, url: str) -> Json:
        """Return the counts for a comment."""
        given = [each["content"] for each in self.of.get(comment, [])]
        return {"url": f"{url}/reactions", "total_count": len(given)} | {each: given.count(each) for each in CONTENTS}


@dataclass
class Statuses:
    """The statuses of each commit, newest first."""

    of: dict[str, list[Json]] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=_ids)

    def add(self, sha: str, url: str, creator: Json, request: Request, now: str) -> Reply:
        asked = request.json()
        if asked.get("state") not in STATES:
            raise invalid("Status", "state")
        if len(asked.get("description") or "") > 140:
            raise invalid("Status", message="description is too long (maximum is 140 characters)")
        number = next(self.ids)
        made = {
            "url": f"{url}/statuses/{sha}",
            "id": number,
            "node_id": f"SC_kwDO{number}",
            "avatar_url": creator["avatar_url"],
            "state": asked["state"],
            "description": asked.get("description"),
            "target_url": asked.get("target_url"),
            "context": asked.get("context", "default"),
            "created_at": now,
            "updated_at": now,
            "creator": creator,
        }
        self.of.setdefault(sha, []).insert(0, made)
        return Reply(201, made)

    def latest(self, sha: str) -> dict[str, Json]:
        """Return the status that counts, of each context."""
        return {each["context"]: each for each in reversed(self.of.get(sha, []))}

    def combined(self, sha: str, url: str, repository: Json) -> Reply:
        statuses = list(self.latest(sha).values())
        states = {each["state"] for each in statuses}
        bad = states & {"error", "failure"}
        state = "failure" if bad else "success" if states == {"success"} else "pending"
        short = [{name: value for name, value in each.items() if name != "creator"} for each in statuses]
        about = {"commit_url": f"{url}/commits/{sha}", "url": f"{url}/commits/{sha}/status", "repository": repository}
        return Reply(200, {"state": state, "statuses": short, "sha": sha, "total_count": len(statuses), **about})
