"""The Hub alone: it costs nothing to have one a test."""

import time

import httpx

from tests.github.hub import Hub


def test_it_starts_at_once() -> None:
    began = time.process_time()
    with Hub() as hub:
        hub.repo("acme/tool")
        assert httpx.get(f"{hub.address}/repos/acme/tool", trust_env=False).json()["full_name"] == "acme/tool"
    assert time.process_time() - began < 0.3
