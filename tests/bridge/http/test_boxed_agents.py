"""Access of a boxed agent with the whole network to the bridge: no token, and no order with a found one (N5)."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from activities.boxes.box import Network
from activities.sealing import seal_key
from bridge.http.app import create_app
from bridge.machine import tcp_callers, tokens_file
from bridge.operations.service import Service
from tests.activities.boxes.world import World, built
from tests.bridge.conftest import Live

pytestmark = pytest.mark.ruling("N5")
CALLS = """
import json, os, sys, urllib.error, urllib.request
url, home, found = json.loads(sys.argv[1])
def reached(path):
    try:
        open(path).close()
        return True
    except OSError:
        return False
def status(path, token, body=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": "Bearer " + token} if token else {})
    try:
        return urllib.request.urlopen(urllib.request.Request(url + path, body, headers)).status
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())["code"]
names = ("bridge.token", "bridge.tokens", "seal.key")
kill = "/v1/jobs/job-0123456789ab/kill"
said = {
    "found": [name for name in names if reached(home + "/" + name)],
    "without a token": [status("/v1/jobs", ""), status(kill, "", b"{}")],
    "with a token it was told": [status("/v1/jobs", found), status(kill, found, b"{}")],
}
print(json.dumps(said))
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with built(tmp_path / "world") as there:
        yield there


async def test_a_boxed_agent_finds_no_way_to_order(
    world: World,
    service: Service,
    listening: Callable[[Service], Live],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.bridge.conftest.create_app", partial(create_app, agent_at=tcp_callers.agent_at))
    seal_key.ensure(service.home.root)
    words = [listening(service).url, str(service.home.root), tokens_file.add(service.home, "told", "act")]
    request = world.request(world.box(Network.FULL), CALLS)
    end = await world.play(world.box(Network.FULL), CALLS, argv=(*request.argv, json.dumps(words)))
    assert json.loads(end.stdout.read_text() or "{}") == {
        "found": [],
        "without a token": [[401, "unauthorized"], [401, "unauthorized"]],
        "with a token it was told": [200, [403, "for_people"]],
    }, end.stderr.read_text()
