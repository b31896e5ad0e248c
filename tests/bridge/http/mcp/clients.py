"""The SDK's client, connected to a bridge, and questions to ask by it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.client import Client
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from tests.bridge.conftest import Live
from tests.bridge.seeds import ROOT
from tests.waiting import PATIENCE
from workflows.model.rows import QuestionRecord

ERAS = ("legacy", "2026-07-28")
QUESTIONS = (
    QuestionRecord(id="store", prompt="which?", choices=("redis", "memory"), job_id=ROOT),
    QuestionRecord(id="limit", prompt="how many?", job_id=ROOT),
)


@asynccontextmanager
async def connected(
    live: Live, secret: str = "", era: str = "legacy", forms: ElicitationFnT | None = None
) -> AsyncIterator[Client]:
    """Connect the SDK's client to a bridge, by default with the operator's token and without forms."""
    secret = secret or live.service.home.bridge_token.read_text()
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=PATIENCE)
    transport = streamable_http_client(f"{live.url}/mcp", http_client=http)
    async with http, Client(transport, mode=era, elicitation_callback=forms) as client:
        yield client
