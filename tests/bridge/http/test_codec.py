"""Decryption of payloads for people: with the token, or by a page of the web UI in the operator's browser."""

import json
import subprocess
from base64 import b64decode
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from google.protobuf import json_format
from temporalio.api.common.v1 import Payload, Payloads

from activities.sealing.payload_seals import Binding, PayloadSeals
from activities.settings.home import Home
from bridge.daemon.server import find_program, server_command
from bridge.http.app import create_app
from bridge.machine import web_ui
from bridge.operations.service import Service
from bridge.operations.temporal import client_of
from tests.bridge.conftest import Live, bearer
from tests.bridge.http.conftest import BASE, NO_TEMPORAL, PLENTY
from tests.bridge.http.dashboard.surfer import Surfer
from tests.keys import KEY

pytestmark = pytest.mark.ruling("N1")

UI = "https://temporal.example"
ENCRYPT = f'encrypt = true\nweb_ui = "{UI}"\n'
HIDDEN = PayloadSeals.of(KEY, encrypt=True)
SECRET = Payload(metadata={"encoding": b"json/plain"}, data=b'"a word nobody guesses"')


def hidden(payload: Payload = SECRET) -> dict[str, Any]:
    closed = HIDDEN.seal(payload, Binding("workflow", "job-1"))
    return dict(json_format.MessageToDict(Payloads(payloads=[closed])))


@pytest.fixture
def encrypting(home: Home) -> Service:
    home.config.write_text(PLENTY + NO_TEMPORAL + ENCRYPT)
    return Service(home)


def calls(service: Service) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(service), client=("127.0.0.1", 9))
    return httpx.AsyncClient(transport=transport, base_url=BASE)


def shown(answer: httpx.Response) -> bytes:
    assert answer.status_code == 200, answer.text
    return b64decode(answer.json()["payloads"][0]["data"])


async def test_a_program_with_the_token_has_payloads_decrypted(encrypting: Service) -> None:
    async with calls(encrypting) as http:
        token = bearer(encrypting)
        assert shown(await http.post("/codec/decode", json=hidden(), headers=token)) == SECRET.data
        sealed = PayloadSeals.of(KEY, encrypt=False).seal(SECRET, Binding("workflow", "job-1"))
        as_sent = json_format.MessageToDict(Payloads(payloads=[sealed]))
        assert shown(await http.post("/codec/decode", json=as_sent, headers=token)) == SECRET.data
        foreign = PayloadSeals.of(bytes(32), encrypt=True).seal(SECRET, Binding("workflow", "job-1"))
        as_sent = json_format.MessageToDict(Payloads(payloads=[foreign]))
        assert shown(await http.post("/codec/decode", json=as_sent, headers=token)) == foreign.data


async def test_nobody_else_has(encrypting: Service) -> None:
    page = {"origin": "http://somewhere.example"}
    async with calls(encrypting) as http:
        token, wrong = bearer(encrypting), {"authorization": "Bearer x"}
        assert (await http.post("/codec/decode", json=hidden(), headers=wrong)).status_code == 401
        assert (await http.post("/codec/decode", json=hidden())).status_code == 401
        assert (await http.post("/ui/codec/decode", json=hidden(), headers=token)).status_code == 401
        for place in ("/codec/decode", "/ui/codec/decode"):
            refused = await http.post(place, json=hidden(), headers=token | page)
            assert refused.status_code == 403
            assert "access-control-allow-origin" not in refused.headers
            asked = await http.request("OPTIONS", place, headers=page)
            assert "access-control-allow-origin" not in asked.headers
            renamed = await http.post(place, json=hidden(), headers=token | {"host": "evil.example"})
            assert renamed.status_code == 403
        assert (await http.get("/codec/decode", headers=token)).status_code == 404
        assert (await http.post("/codec/encode", json=hidden(), headers=token)).status_code == 404
        for body in (b"", b"[]", b"{", b'{"payloads": 5}', b"\xff"):
            assert (await http.post("/codec/decode", content=body, headers=token)).status_code in (200, 400)


async def test_a_page_of_the_web_ui_asks_with_the_session_of_the_dashboard(encrypting: Service) -> None:
    async with Surfer(encrypting) as ann:
        http, page = ann.client, {"origin": UI}
        asked = await http.request("OPTIONS", "/ui/codec/decode", headers=page)
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == UI
        assert asked.headers["access-control-allow-credentials"] == "true"
        stranger = await http.post("/ui/codec/decode", json=hidden(), headers=page)
        assert stranger.status_code == 401
        await ann.enter()
        assert shown(await http.post("/ui/codec/decode", json=hidden(), headers=page)) == SECRET.data
        assert shown(await http.post("/ui/codec/decode", json=hidden(), headers={"origin": BASE})) == SECRET.data
        assert (await http.post("/ui/codec/decode", json=hidden())).status_code == 401, (
            "no page of the web UI has asked"
        )


async def test_without_encryption_there_is_no_such_place(service: Service) -> None:
    async with calls(service) as http:
        assert (await http.post("/codec/decode", json=hidden(), headers=bearer(service))).status_code == 404
        asked = await http.request("OPTIONS", "/ui/codec/decode", headers={"origin": UI})
        assert "access-control-allow-origin" not in asked.headers


def test_the_embedded_web_ui_is_told_where_to_ask(home: Home) -> None:
    ui = web_ui.hidden_listener()
    command = server_command(home, 7233, ui, program=home.root, encrypt=True)
    assert command[command.index("--ui-codec-endpoint") + 1] == "/ui/codec", "it is served beside the dashboard"
    assert "--ui-codec-endpoint" not in server_command(home, 7233, ui, program=home.root)


async def test_temporals_own_program_shows_what_is_encrypted(
    home: Home, temporal: str, listening: Callable[[Service], Live]
) -> None:
    home.config.write_text(f'{PLENTY}[temporal]\naddress = "{temporal}"\nnamespace = "default"\n{ENCRYPT}')
    service = Service(home)
    live, name = listening(service), f"hidden-{uuid4().hex}"
    client = await client_of(service)
    await client.start_workflow("Notify", "a word nobody guesses", id=name, task_queue="nobody")

    def show(*words: str) -> bytes:
        where = ("--address", temporal, "--namespace", "default", "--disable-config-file", "--disable-config-env")
        command = (str(find_program()), "workflow", "show", "-w", name, "--output", "json", *where, *words)
        done = subprocess.run(command, capture_output=True, check=True)
        given = json.loads(done.stdout)["events"][0]["workflowExecutionStartedEventAttributes"]["input"]
        return b64decode(given["payloads"][0]["data"])

    token = bearer(service)["Authorization"]
    assert b"a word" not in show()
    assert show("--codec-endpoint", f"{live.url}/codec", "--codec-auth", token) == b'"a word nobody guesses"'
    service.store.dispose()
