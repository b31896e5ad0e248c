"""The webhook: signed, never trusted, only a trigger for the poller (ruling L7)."""

import asyncio
import hashlib
import hmac
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.settings.home import Home
from activities.store.github import account
from bridge.http import process
from bridge.http.app import create_app
from bridge.http.gates import audit, webhook
from bridge.http.gates.rate import Rate
from bridge.http.wire.webhook import LARGEST, PATH
from bridge.operations.service import Service
from tests.bridge import github_seeds
from tests.bridge.conftest import Live, bearer
from tests.bridge.github_seeds import SETTINGS, SHOP
from tests.bridge.http.conftest import BASE, NO_TEMPORAL, PLENTY
from tests.depth import cases
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.ruling("L7")

SECRET = "a secret that two know"
WITH_SECRET = f'{SETTINGS}webhook_secret_env = "HOOK_SECRET"\n'
COMMENT = {"action": "created", "repository": {"full_name": SHOP}}
NUMBERS = count(1)


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers(body: bytes, event: str = "issue_comment", **more: str) -> dict[str, str]:
    """Return GitHub's headers, as sent through a proxy that keeps the requested host."""
    named = {"Host": "hooks.example.org", "Content-Type": "application/json", "X-GitHub-Event": event}
    named |= {"X-GitHub-Delivery": f"72d3162e-cc78-11e3-81ab-{next(NUMBERS):012d}"}
    return named | {"X-Hub-Signature-256": signature(body)} | {key.replace("_", "-"): more[key] for key in more}


def raw(named: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Encode headers, also with bytes that no header should hold."""
    return [(key.encode(), value.encode("latin-1")) for key, value in named.items()]


@pytest.fixture
def service(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Create a service that reads one repository, for a waiting tree of it."""
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    home.config.write_text(PLENTY + NO_TEMPORAL + WITH_SECRET)
    made = Service(home)
    github_seeds.thread(made)
    yield made
    made.store.dispose()


def stranger(service: Service) -> httpx.AsyncClient:
    """Return a client without a token."""
    transport = httpx.ASGITransport(create_app(service), client=("10.0.0.9", 999))
    return httpx.AsyncClient(transport=transport, base_url=BASE)


@pytest_asyncio.fixture
async def github(service: Service) -> httpx.AsyncClient:
    return stranger(service)


def wanted(service: Service) -> float:
    return next(each.wanted_at for each in account.readings(service.store) if each.github == SHOP)


async def test_a_signed_delivery_wakes_the_poller_without_a_token(service: Service, github: httpx.AsyncClient) -> None:
    body = json.dumps(COMMENT).encode()
    answer = await github.post(PATH, content=body, headers=headers(body))
    assert (answer.status_code, answer.json()) == (202, {"says": f"{SHOP} will be read"})
    assert wanted(service) > 0


async def test_what_github_sends_by_default_is_a_form(service: Service, github: httpx.AsyncClient) -> None:
    body = urlencode({"payload": json.dumps({"repository": {"full_name": "Acme/Shop"}})}).encode()
    sent = headers(body, Content_Type="application/x-www-form-urlencoded")
    answer = await github.post(PATH, content=body, headers=sent)
    assert answer.json() == {"says": f"{SHOP} will be read"}


async def test_a_delivery_is_taken_once(service: Service, github: httpx.AsyncClient) -> None:
    body = json.dumps(COMMENT).encode()
    sent = headers(body)
    assert (await github.post(PATH, content=body, headers=sent)).status_code == 202
    account.note_reading(service.store, SHOP, wanted_at=0.0)
    async with stranger(service) as after_a_restart:
        again = await after_a_restart.post(PATH, content=body, headers=sent)
    assert (again.status_code, again.json()) == (202, {"says": "taken before"})
    assert wanted(service) == 0


@pytest.mark.parametrize("delivery", ["", "a b", "x" * 101, "../etc", "1\u00b2"])
async def test_without_an_id_it_is_refused(service: Service, github: httpx.AsyncClient, delivery: str) -> None:
    body = json.dumps(COMMENT).encode()
    sent = raw(headers(body) | {"X-GitHub-Delivery": delivery})
    assert (await github.post(PATH, content=body, headers=sent)).status_code == 400
    assert wanted(service) == 0


SIGNED = signature(b"{}")


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (SIGNED, 202),
        (None, 401),
        ("", 401),
        (SIGNED[:-1], 401),
        (SIGNED[:-1] + ("0" if SIGNED[-1] != "0" else "1"), 401),
        (SIGNED.upper(), 401),
        (SIGNED.removeprefix("sha256="), 401),
        (f"{SIGNED}, {SIGNED}", 401),
        (signature(b"{}", ""), 401),
        (signature(b"{}", "another"), 401),
        (signature(b"{ }"), 401),
        ("sha1=" + hmac.new(SECRET.encode(), b"{}", hashlib.sha1).hexdigest(), 401),
        ("sha256=" + "\u00fc" * 64, 401),
    ],
)
async def test_only_the_right_signature_passes(github: httpx.AsyncClient, shown: str | None, status: int) -> None:
    sent = {key: value for key, value in headers(b"{}").items() if key != "X-Hub-Signature-256"}
    sent |= {} if shown is None else {"X-Hub-Signature-256": shown}
    assert (await github.post(PATH, content=b"{}", headers=raw(sent))).status_code == status


async def test_the_token_of_the_bridge_opens_nothing_here(service: Service, github: httpx.AsyncClient) -> None:
    answer = await github.post(PATH, content=b"{}", headers=bearer(service))
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


async def test_a_signature_opens_nothing_else(github: httpx.AsyncClient) -> None:
    sent = headers(b"") | {"Host": "127.0.0.1"}
    assert (await github.get("/v1/jobs", headers=sent)).status_code == 401
    assert (await github.get(PATH, headers=sent)).status_code == 401
    assert (await github.post(PATH + "/", headers=sent)).status_code == 401


@pytest.mark.parametrize(
    ("text", "secret"),
    [("", SECRET), ('[github]\nwebhook_secret_env = "HOOK_SECRET"\n', SECRET), (SETTINGS, SECRET), (WITH_SECRET, "")],
    ids=["no [github]", "no account", "no variable is named", "the variable is not set"],
)
async def test_without_an_account_or_a_secret_it_is_not_there(
    home: Home, monkeypatch: pytest.MonkeyPatch, text: str, secret: str
) -> None:
    monkeypatch.setenv("HOOK_SECRET", secret)
    home.config.write_text(NO_TEMPORAL + text)
    made = Service(home)
    async with stranger(made) as client:
        answer = await client.post(PATH, content=b"{}", headers=headers(b""))
        shown = await client.get("/openapi.json", headers=bearer(made))
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert PATH not in shown.json()["paths"]
    made.store.dispose()


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("issue_comment", {"repository": {"full_name": "acme/other"}}),
        ("issue_comment", {"organization": {"login": "acme"}}),
        ("issue_comment", {"repository": {"full_name": [SHOP]}}),
        ("issue_comment", {"repository": SHOP}),
        ("issue_comment", [COMMENT]),
        ("issue_comment", None),
        ("star", COMMENT),
        ("ping", {"zen": "Design for failure.", "hook_id": 1}),
        ("", COMMENT),
        ("nonsense \u00fc", COMMENT),
    ],
)
async def test_what_is_not_for_us_does_nothing(
    service: Service, github: httpx.AsyncClient, event: str, payload: object
) -> None:
    body = json.dumps(payload).encode()
    sent = raw(headers(body, event))
    answer = await github.post(PATH, content=body, headers=sent)
    assert (answer.status_code, answer.json()) == (202, {"says": "nothing to do"})
    assert wanted(service) == 0


async def test_a_repository_of_which_nothing_is_open_is_not_looked_at(home: Home, service: Service) -> None:
    github_seeds.thread(service, "job-111111111111", 8, "acme/old", over=True)
    body = json.dumps({"repository": {"full_name": "acme/old"}}).encode()
    async with stranger(service) as client:
        answer = await client.post(PATH, content=body, headers=headers(body))
    assert answer.json() == {"says": "nothing to do"}


async def test_the_document_tells_of_it_and_that_it_needs_no_token(service: Service, github: httpx.AsyncClient) -> None:
    operation = (await github.get("/openapi.json", headers=bearer(service))).json()["paths"][PATH]["post"]
    assert operation["security"] == []
    assert {each["name"] for each in operation["parameters"]} == {"x-github-delivery", "x-github-event"}
    assert {"202", "400", "401", "413", "429"} <= set(operation["responses"])


_FUZZ = settings(
    max_examples=cases(60, 600), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=30) | st.just(SHOP),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["repository", "full_name", "action", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
BODIES = (
    st.binary(max_size=300)
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.text(max_size=200).map(lambda text: urlencode({"payload": text}).encode("utf-8", "surrogatepass"))
    | st.sampled_from([b"[" * 200_000, b'{"repository":' * 5000, b"payload=%ff", b"&" * 50, b"\xef\xbb\xbf{}", b"\0"])
)
KINDS = st.sampled_from(["application/json", "application/x-www-form-urlencoded", "text/plain", "x;;y", ""])


@_FUZZ
@given(body=BODIES, kind=KINDS, event=st.sampled_from(["issue_comment", "push", "x" * 500, "\u00e9", "ping"]))
async def test_nothing_that_is_signed_ever_fails(github: httpx.AsyncClient, body: bytes, kind: str, event: str) -> None:
    sent = raw(headers(body, event, Content_Type=kind))
    answer = await github.post(PATH, content=body, headers=sent)
    assert answer.status_code == 202, answer.text
    assert answer.json()["says"] in {"nothing to do", f"{SHOP} will be read"}


@_FUZZ
@given(body=BODIES, shown=st.binary(max_size=80).filter(lambda header: b"\n" not in header and b"\r" not in header))
async def test_nothing_that_is_not_signed_ever_passes(github: httpx.AsyncClient, body: bytes, shown: bytes) -> None:
    sent = raw(headers(body) | {"X-Hub-Signature-256": shown.decode("latin-1")})
    answer = await github.post(PATH, content=body, headers=sent)
    assert answer.status_code in {401, 429}


class TestLimits:
    async def test_a_body_may_be_as_large_as_five_mebibytes(self, github: httpx.AsyncClient) -> None:
        for size, status in ((LARGEST, 202), (LARGEST + 1, 413)):
            body = b" " * size
            assert (await github.post(PATH, content=body, headers=headers(body))).status_code == status

    async def test_deliveries_do_not_use_up_what_the_operator_may_call(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bridge.http.app.Rate", partial(Rate, clock=lambda: 100.0))
        monkeypatch.setattr("bridge.http.app.SIGNED", 3)
        config = service.home.config
        config.write_text(config.read_text().replace("1000000", "1"))
        async with stranger(Service(service.home)) as client:
            codes = [(await client.post(PATH, content=b"{}", headers=headers(b"{}"))).status_code for _ in range(4)]
            assert codes == [202, 202, 202, 429]
            assert (await client.get("/v1/jobs", headers=bearer(service))).status_code == 200

    async def test_strangers_can_neither_fill_the_audit_nor_keep_deliveries_out(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bridge.http.app.Rate", partial(Rate, clock=lambda: 100.0))
        async with stranger(service) as client:
            answers = [(await client.post(PATH, content=b"x")).status_code for _ in range(webhook.STRANGERS + 5)]
            assert answers == [401] * webhook.STRANGERS + [429] * 5
            assert len(service.home.strangers.read_text().splitlines()) == audit.STRANGERS
            assert (await client.post(PATH, content=b"{}", headers=headers(b"{}"))).status_code == 202
        last = json.loads(service.home.audit.read_text().splitlines()[-1])
        assert (last["route"], last["status"]) == (PATH, 202)

    async def test_only_so_many_bodies_are_read_at_once_and_none_for_long(
        self, service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(webhook, "AT_ONCE", 2)
        monkeypatch.setattr(webhook, "SECONDS", PATIENCE)
        live = listening(service)
        where = (live.address.host, live.address.port)
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: {SIGNED}\r\nContent-Length: 9\r\n\r\n{{"

        async def is_(status: int) -> bool:
            async with httpx.AsyncClient(base_url=live.url, timeout=20) as client:
                return (await client.post(PATH, content=b"{}", headers=headers(b"{}"))).status_code == status

        with ExitStack() as stack:
            for _ in range(2):
                slow = stack.enter_context(socket.create_connection(where))
                slow.sendall(head.encode())
            await until(lambda: is_(429), "no room for a third")
        await until(lambda: is_(202), "room again")
        monkeypatch.setattr(webhook, "SECONDS", 0.1)
        with socket.create_connection(where, timeout=PATIENCE) as slow:
            slow.sendall(head.encode())
            assert await asyncio.to_thread(slow.recv, 12) == b"HTTP/1.1 400", "it is not read for long"

    async def test_who_shows_no_signature_is_answered_before_a_body_is_read(
        self, service: Service, listening: Callable[[Service], Live]
    ) -> None:
        live = listening(service)
        with socket.create_connection((live.address.host, live.address.port), timeout=5) as line:
            line.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode())
            assert line.recv(12) == b"HTTP/1.1 401"


async def test_the_secret_is_nowhere(
    service: Service, github: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    body = json.dumps(COMMENT).encode()
    answers = [await github.post(PATH, content=body, headers=headers(body)), await github.post(PATH, content=body)]
    seen = service.home.audit.read_text() + caplog.text + "".join(each.text + str(each.headers) for each in answers)
    assert SECRET not in seen
    assert signature(body) not in seen
    assert not [
        path for path in service.home.root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_what_the_bridge_starts_does_not_see_the_secrets(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", "x")
    process.app_of(service)
    assert not {"HOOK_SECRET", "DESK_TOKEN"} & {*os.environ}


@pytest.mark.long
async def test_everything_github_ever_sends_is_taken(service: Service, github: httpx.AsyncClient) -> None:
    from tests.github.tools import need

    index = json.loads((Path(need("examples")) / "index.json").read_text())
    sent = 0
    for event in index:
        for payload in event["examples"]:
            body = json.dumps(payload).encode()
            answer = await github.post(PATH, content=body, headers=headers(body, event["name"]))
            assert answer.status_code == 202, (event["name"], answer.text)
            sent += 1
    assert sent > 100
    assert wanted(service) == 0, "none of it is of a repository of ours"
