"""The repositories whose comments are polled, and webhook deliveries: the service reads only the repository's name, and
polls it at once (ruling L7).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from activities.store.github import account, threads
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from bridge.operations.service import Service
from workflows.model.errors import UsageError

WAKING = frozenset({"issue_comment", "issues", "pull_request", "merge_group", "push"})
"""The events after which a repository is polled: of comments, pull requests' heads, and merge queues."""

STARTING = frozenset({"ask", "review", "implement"})
"""Commands that need no tree: while one is allowed, comments in every repository are polled."""

NOTHING, BEFORE = "nothing to do", "taken before"
_DELIVERY = re.compile(r"[A-Za-z0-9-]{1,100}")
_EVENT = re.compile(r"[a-z0-9_]{1,60}")


def served_repos(service: Service) -> list[Repo]:
    """Return the registered repositories that have a GitHub name which `[github].repos` allows."""
    wanted = service.settings.github.repos
    return [repo for repo in repo_rows.every(service.store) if repo.github and (not wanted or repo.name in wanted)]


def of_interest(service: Service) -> set[str]:
    """Return the repositories to poll: those with an open tree, or with a pull request whose head is checked.

    Return all while comments may start work. Include those with a blocked tree while comments may retry.
    """
    polled = {each.github for each in threads.open_ones(service.store)}
    if STARTING & {*service.settings.github.commands}:
        polled |= {repo.github for repo in served_repos(service)}
    if "retry" in service.settings.github.commands:
        polled |= {each.github for each in threads.blocked_ones(service.store)}
    if service.settings.github.check:
        polled |= {each.github for each in threads.open_pulls(service.store)}
    return polled


@dataclass(frozen=True)
class WebhookDelivery:
    """A delivery with a valid signature."""

    delivery_id: str
    event: str
    content_type: str
    body: bytes = field(repr=False)


def secret(service: Service, environ: Mapping[str, str]) -> str:
    """Return the webhook's secret; empty if no account or no secret is set up."""
    wanted = service.settings.github
    return environ.get(wanted.webhook_secret_env, "").strip() if wanted.is_configured else ""


def take(service: Service, delivery: WebhookDelivery) -> str:
    """Record a webhook delivery, and schedule a poll of its repository if one is needed; return a sentence on that."""
    if not _DELIVERY.fullmatch(delivery.delivery_id):
        raise UsageError("X-GitHub-Delivery is missing or invalid")
    event = delivery.event if _EVENT.fullmatch(delivery.event) else ""
    if not account.is_new_delivery(service.store, delivery.delivery_id, event):
        return BEFORE
    if event not in WAKING:
        return NOTHING
    named = _repository(delivery).lower()
    mine = next((each for each in of_interest(service) if each.lower() == named), None)
    if mine is None or not account.want_reading(service.store, mine):
        return NOTHING
    return f"{mine} will be read"


def _repository(delivery: WebhookDelivery) -> str:
    """Return `repository.full_name` of the delivery's body; empty if the body has another shape."""
    try:
        sent = delivery.body
        if delivery.content_type.lower().startswith("application/x-www-form-urlencoded"):
            sent = parse_qs(sent.decode(), max_num_fields=10)["payload"][0].encode()
        name = json.loads(sent)["repository"]["full_name"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""
