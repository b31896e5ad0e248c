"""Long texts in calls: their redaction leaves the event loop free (ruling N7)."""

import asyncio
import threading
import time

import pytest

from activities.host import helper_process
from activities.redaction import redact
from activities.redaction.known_values import KnownValues
from bridge.operations.service import Service
from tests.bridge.http.conftest import caller


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("size", [45_000, 900_000])
async def test_others_are_answered_while_a_long_message_is_redacted(
    with_temporal: Service, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A message of 45 KB took the bridge away for 50 seconds."""
    threads: set[int] = set()

    def search(text: str, known: KnownValues) -> list[tuple[int, int]]:
        threads.add(threading.get_ident())
        return helper_process.secrets(text, known)

    monkeypatch.setattr(redact, "_apart", search)
    message = "password=" + "_a" * (size // 2)
    waits: list[float] = []
    try:
        async with caller(with_temporal) as client:
            body = {"message": message, "repo": "acme/shop"}
            asked = asyncio.create_task(client.post("/v1/agents/scout/ask", json=body))
            while not asked.done() or not waits:
                begun = time.perf_counter()
                assert (await client.get("/healthz")).status_code in (200, 503)
                waits.append(time.perf_counter() - begun)
                await asyncio.sleep(0.02)
            assert (await asked).status_code < 500
    finally:
        helper_process.close()
    assert max(waits) < 1.0 * 3, "a second, on a machine three times as busy"
    assert threading.get_ident() not in threads
    assert bool(threads) == (size > redact.LONG)
