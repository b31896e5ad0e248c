"""Clients of a service's bridge."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.e2e.conftest import Installed


def client(installed: Installed) -> httpx.Client:
    url = installed.json("daemon", "status")["state"]["bridge_url"]
    return httpx.Client(base_url=url, headers=token(installed), timeout=60)


def token(installed: Installed) -> dict[str, str]:
    return {"Authorization": f"Bearer {(installed.home / 'bridge.token').read_text()}"}


@contextmanager
def serving(installed: Installed) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Run a bridge of the test's own, because the daemon delays restarts of its bridge."""
    words = [sys.executable, "-m", "cli.main", "bridge", "serve", "--addr", "127.0.0.1:0"]
    environment = installed.environment
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, cwd=installed.tmp)
    assert process.stdout is not None
    url = process.stdout.readline().removeprefix("bridge listens on ").strip()
    try:
        with httpx.Client(base_url=url, headers=token(installed), timeout=60) as http:
            yield process, http
    finally:
        process.kill()
        process.wait()
