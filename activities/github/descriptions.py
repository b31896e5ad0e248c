"""Title and text of a pull request or an issue, for prompts (ruling P3)."""

import asyncio
from dataclasses import replace

from sqlalchemy import Engine

from activities.github import api
from activities.github.client import Client, GithubError
from activities.github.credentials import Credentials
from activities.github.models import Issue, Pull
from activities.host.base import BoundWork
from activities.store.artifacts import Artifacts
from workflows.model.long_texts import Text
from workflows.policy import binding_words
from workflows.text.markdown import excerpt

SECONDS = 10.0
TITLE_LIMIT = 300
TEXT_LIMIT = 8_000


def describe(binding: BoundWork, store: Engine, artifacts: Artifacts, api_url: str, token: str) -> BoundWork:
    """Ask GitHub for the title and text. If GitHub doesn't answer, the work starts without them, and its prompt says
    so.

    Every leg of a tree carries the text, so it is stored by digest.
    """
    try:
        answer = asyncio.run(_ask(binding, store, api_url, token))
    except (GithubError, TimeoutError):
        return binding
    where = binding_words.address(binding.github, binding.pull_request, binding.issue, binding.web)
    text = f"{answer.title.strip()[:TITLE_LIMIT]}\n\n{excerpt(answer.body.strip(), TEXT_LIMIT, where)}".strip()
    into = answer.base.ref if isinstance(answer, Pull) else ""
    return replace(binding, about=Text(digest=artifacts.put(text.encode())), into=into)


async def _ask(binding: BoundWork, store: Engine, api_url: str, token: str) -> Pull | Issue:
    async with asyncio.timeout(SECONDS), Client(store, Credentials(token=token), api_url) as client:
        if binding.pull_request is not None:
            return await api.pull(client, binding.github, binding.pull_request)
        return await api.issue(client, binding.github, binding.issue or 0)
