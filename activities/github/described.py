"""Title and text of a pull request or an issue, for prompts (ruling P3)."""

import asyncio
from dataclasses import replace

from sqlalchemy import Engine

from activities.github import api
from activities.github.client import Client, GithubError
from activities.github.credentials import Credentials
from activities.github.models import Issue, Pull
from activities.host.belongs_to import Bound
from activities.store.artifacts import Artifacts
from workflows.model.long_texts import Text
from workflows.policy import binding_words
from workflows.text.fences import excerpt

SECONDS = 10.0
TITLE_LIMIT = 300
TEXT_LIMIT = 8_000


def described(found: Bound, store: Engine, artifacts: Artifacts, api_url: str, token: str) -> Bound:
    """Ask GitHub for the title and text. Without an answer the work starts too, and its prompt says so.

    Every leg of a tree carries the text, so it is stored by digest.
    """
    try:
        told = asyncio.run(_asked(found, store, api_url, token))
    except (GithubError, TimeoutError):
        return found
    where = binding_words.address(found.github, found.pull_request, found.issue, found.web)
    text = f"{told.title.strip()[:TITLE_LIMIT]}\n\n{excerpt(told.body.strip(), TEXT_LIMIT, where)}".strip()
    into = told.base.ref if isinstance(told, Pull) else ""
    return replace(found, about=Text(digest=artifacts.put(text.encode())), into=into)


async def _asked(found: Bound, store: Engine, api_url: str, token: str) -> Pull | Issue:
    async with asyncio.timeout(SECONDS), Client(store, Credentials(token=token), api_url) as client:
        if found.pull_request is not None:
            return await api.pull(client, found.github, found.pull_request)
        return await api.issue(client, found.github, found.issue or 0)
