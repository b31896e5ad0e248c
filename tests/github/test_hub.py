"""The Hub alone: one for each test costs nothing."""

import re
import time
from datetime import UTC, datetime, timedelta

import httpx

from tests.github.hub import Hub


def test_it_starts_at_once() -> None:
    began = time.process_time()
    with Hub() as hub:
        hub.repo("acme/tool")
        assert time.process_time() - began < 0.3
        assert httpx.get(f"{hub.address}/repos/acme/tool", trust_env=False).json()["full_name"] == "acme/tool"


def test_the_time_is_the_test_s_own() -> None:
    today = datetime(2026, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
    with Hub(clock=lambda: today) as hub:
        hub.repo("acme/tool")
        number = hub.issue()
        hub.comment("acme", number, "old", at=today - timedelta(days=1))
        hub.comment("acme", number, "new")
        assert [each["created_at"] for each in hub.comments(number)] == ["2026-03-03T05:06:07Z", "2026-03-04T05:06:07Z"]


def test_a_token_that_is_over_is_nobody_s(hub: Hub) -> None:
    token = hub.token("ann", expires=datetime.now(UTC) + timedelta(days=30))

    def asked() -> httpx.Response:
        return httpx.get(f"{hub.address}/user", headers={"Authorization": f"token {token}"}, trust_env=False)

    assert re.fullmatch(r"[\d-]+ [\d:]+ UTC", asked().headers["github-authentication-token-expiration"])
    hub.expire(token)
    assert (asked().status_code, asked().json()["message"]) == (401, "Bad credentials")


def test_what_it_does_not_know_is_listed(hub: Hub) -> None:
    assert httpx.get(f"{hub.address}/repos/acme/tool/stargazers", trust_env=False).status_code == 404
    assert hub.unknown == ["GET /repos/acme/tool/stargazers"]
