"""Webhooks as GitHub delivers them: signed, with its headers, more than once or in another order on demand.

delivery = comment_delivery(github, comment)           # of something that is there; examples() are GitHub's own
deliver(f"{bridge}/v1/github/webhook", delivery, secret)
for each in disordered([one, two], seed=7): ...        # every one at least once, some again, in any order
"""

import hashlib
import hmac
import json
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx

from tests.github.hub import Hub
from tests.github.people import ONLY_HERE
from tests.github.tools import need
from tests.github.wire import Json


@dataclass(frozen=True)
class Delivery:
    event: str
    payload: Json
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """The delivery's id, kept when it is delivered again."""

    @property
    def body(self) -> bytes:
        return json.dumps(self.payload, separators=(",", ":")).encode()

    def headers(self, secret: str) -> dict[str, str]:
        """Return GitHub's headers; without a secret there is no signature."""
        return {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/0a1b2c3",
            "Accept": "*/*",
            "X-GitHub-Event": self.event,
            "X-GitHub-Delivery": self.id,
            "X-GitHub-Hook-ID": "271828182",
            "X-GitHub-Hook-Installation-Target-Type": "repository",
            "X-GitHub-Hook-Installation-Target-ID": "314159265",
            **({"X-Hub-Signature": signature(secret, self.body, "sha1")} if secret else {}),
            **({"X-Hub-Signature-256": signature(secret, self.body)} if secret else {}),
        }


def signature(secret: str, body: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm}={hmac.new(secret.encode(), body, algorithm).hexdigest()}"


def deliver(address: str, delivery: Delivery, secret: str, **headers: str) -> httpx.Response:
    """Post a delivery; `headers` replace its own (`**{"X-Hub-Signature-256": "sha256=00"}`)."""
    sent = delivery.headers(secret) | headers
    return httpx.post(address, content=delivery.body, headers=sent, trust_env=False, timeout=60)


def disordered(deliveries: Sequence[Delivery], seed: int, again: int = 2) -> list[Delivery]:
    """Return each delivery once and `again` of them a second time, in an order that the seed decides."""
    chance = random.Random(seed)
    sent = [*deliveries, *(chance.choice(deliveries) for _ in range(again if deliveries else 0))]
    chance.shuffle(sent)
    return sent


def comment_delivery(github: Hub, comment: int, action: str = "created", repo: str = "") -> Delivery:
    """Return GitHub's delivery for an existing comment."""
    where = github.of(repo)
    answer = github.ask("GET", f"{where}/issues/comments/{comment}")
    issue = github.ask("GET", answer["issue_url"].partition(github.address)[2])
    changed = {"changes": {"body": {"from": "what it was"}}} if action == "edited" else {}
    about = {"issue": issue, "comment": answer, **changed}
    return Delivery("issue_comment", {"action": action, **about, **_who(github, repo, answer["user"])})


def pull_delivery(github: Hub, number: int, action: str = "synchronize", repo: str = "") -> Delivery:
    """Return GitHub's delivery for an existing pull request."""
    pull = github.pull_of(number, repo)
    moved = (
        {"before": hashlib.sha1(b"before").hexdigest(), "after": pull["head"]["sha"]} if action == "synchronize" else {}
    )
    about = {"action": action, "number": number, "pull_request": pull, **moved}
    return Delivery("pull_request", {**about, **_who(github, repo, pull["user"])})


def _who(github: Hub, repo: str, sender: Json) -> Json:
    answer = github.ask("GET", github.of(repo))
    return {"repository": {name: answer[name] for name in answer if name not in ONLY_HERE}, "sender": sender}


@cache
def _examples() -> list[Json]:
    examples: list[Json] = json.loads((need("examples") / "index.json").read_text())
    return examples


def examples(event: str = "") -> list[Delivery]:
    """Return GitHub's own examples of one event, or of all; skip the test if they are not installed."""
    payloads: list[tuple[str, Any]] = [(each["name"], one) for each in _examples() for one in each["examples"]]
    return [Delivery(name, payload) for name, payload in payloads if event in ("", name)]
