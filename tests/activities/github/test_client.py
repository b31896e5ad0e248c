"""Every request is counted, none is repeated; limits say until when; no error holds the token (L2, L8)."""

import logging
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import Engine

from activities.github import api
from activities.github.client import AwayError, Client, LimitedError, UnknownAccountError, repository_in
from activities.github.credentials import App, Credentials
from activities.store.github import account
from tests.github.hub import Hub


async def test_who_we_are_and_what_somebody_may(hub: Hub, client: Client) -> None:
    assert (await api.whoami(client)).login == "helper"
    assert await api.permission(client, "acme/tool", "ann") == "write"
    assert await api.permission(client, "acme/tool", "bob") in {"read", "none"}
    assert await api.permission(client, "acme/tool", "nobody-at-all") == "none"


@pytest.mark.ruling("L7", "L8")
async def test_what_has_not_changed_is_free_and_counted_apart(hub: Hub, client: Client, store: Engine) -> None:
    number = hub.pull()
    hub.comment(as_="ann", number=number, body="hello")
    first = await api.comments_since(client, "acme/tool", 0.0)
    assert [each.body for each in first] == ["hello"]
    assert not client.was_free
    assert first[0].number == number
    for _ in range(3):
        assert await api.comments_since(client, "acme/tool", 0.0) == first
        assert client.was_free
    (hour,) = account.hours(store, time.time() - 3600)
    assert (hour.github, hour.counted, hour.free, hour.written) == ("acme/tool", 1, 3, 0)


async def test_a_restarted_process_still_has_free_answers(hub: Hub, client: Client, store: Engine) -> None:
    await api.comments_since(client, "acme/tool", 0.0)
    async with Client(store, Credentials(hub.tokens["helper"]), hub.address) as another:
        await api.comments_since(another, "acme/tool", 0.0)
        assert another.was_free


async def test_all_pages_are_read(hub: Hub, client: Client) -> None:
    number = hub.issue()
    for at in range(205):
        hub.comment(as_="ann", number=number, body=str(at))
    comments = await api.comments_of(client, "acme/tool", number, 0.0)
    assert [each.body for each in comments] == [str(at) for at in range(205)]


def _left_alone(hub: Hub) -> None:
    hub.secondary_limit("GET /user", retry_after=7)


def _used_up(hub: Hub) -> None:
    hub.primary_limit("GET /user")


def _too_often(hub: Hub) -> None:
    body = {"message": "You have exceeded a secondary rate limit."}
    hub.fail("GET /user", 1, 403, {}, body)


@pytest.mark.ruling("L8")
@pytest.mark.parametrize(("limit", "least", "most"), [(_left_alone, 5, 8), (_used_up, 0, 3601), (_too_often, 50, 61)])
async def test_a_limit_says_until_when(
    hub: Hub, client: Client, limit: Callable[[Hub], None], least: float, most: float
) -> None:
    limit(hub)
    with pytest.raises(LimitedError) as caught:
        await api.whoami(client)
    assert least <= caught.value.until - time.time() <= most


@pytest.mark.ruling("L8")
async def test_a_write_whose_answer_is_lost_is_not_repeated(hub: Hub, client: Client) -> None:
    number = hub.issue()
    for how in ("502", "cut"):
        hub.after_write("POST /repos/*/comments", how)
        with pytest.raises(AwayError):
            await api.add_comment(client, "acme/tool", number, how)
    assert hub.bodies(number) == ["502", "cut"]


async def test_github_that_is_away_or_broken_is_one_error(hub: Hub, client: Client) -> None:
    hub.fail("GET /user", 1, 503, {}, {"message": "no"})
    with pytest.raises(AwayError, match="503"):
        await api.whoami(client)
    hub.fail("GET /user", 1, 200, {"content-type": "application/json"}, b"<html>")
    with pytest.raises(AwayError):
        await api.whoami(client)
    hub.down()
    with pytest.raises(AwayError, match="cannot be reached"):
        await api.whoami(client)


@pytest.mark.ruling("L2")
async def test_nothing_that_is_raised_or_logged_holds_the_token(
    hub: Hub, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token, raised = hub.tokens["helper"], list[str]()
    hub.revoke(token)
    for _ in range(2):
        with pytest.raises((UnknownAccountError, AwayError)) as caught:
            await api.whoami(client)
        raised.append(f"{caught.value!r} {caught.value} {caught.value.__cause__} {caught.value.__context__!r}")
        hub.down()
    assert "401" in raised[0]
    assert caplog.text
    assert token not in f"{raised}{caplog.text}{Credentials(token)!r}"


async def test_a_github_app_gets_a_token_and_renews_it(
    hub: Hub, store: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    app = App("4242", str(hub.app(4242)), key.decode())
    async with Client(store, Credentials(app=app), hub.address) as client:
        assert (await api.whoami(client)).login == "our-service[bot]"
        await api.repository(client, "acme/tool")
        await api.repository(client, "acme/tool")
        asked = [line for line in hub.lines() if "access_tokens" in line]
        assert len(asked) == 1
        client._token_until = time.time() + 60
        await api.repository(client, "acme/tool")
        assert len([line for line in hub.lines() if "access_tokens" in line]) == 2
    assert repr(app).count("PRIVATE") == 0


async def test_certificates_are_read_once_for_what_the_environment_names(
    store: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str | None] = []
    made = httpx.create_ssl_context()

    def reading() -> ssl.SSLContext:
        read.append(os.environ.get("SSL_CERT_FILE"))
        return made

    monkeypatch.setattr(httpx, "create_ssl_context", reading)
    for name in ("/first.pem", "/first.pem", "/second.pem", "/first.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", name)
        async with Client(store, Credentials("a-token"), "https://api.example.invalid"):
            pass
    assert read == ["/first.pem", "/second.pem"]


def test_the_repository_an_address_is_about() -> None:
    assert repository_in("https://api.github.com/repos/acme/tool/issues/7/comments") == "acme/tool"
    assert repository_in("https://ghe.example/api/v3/repos/acme/tool") == "acme/tool"
    assert repository_in("https://api.github.com/user") == ""
