"""The agents' real programs without a valid login: the job is soon blocked."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from activities.runtimes.known_runtimes import PROGRAMS as TABLE
from tests.e2e.conftest import Installed, set_up
from tests.e2e.programs import PROGRAMS, available, need
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.ruling("B3"), pytest.mark.long]

GIVES_UP_BY_ITSELF = 175.0
"""Seconds for which claude retries its login."""
LOGIN = {
    "claudeAiOauth": {
        "accessToken": "sk-ant-oat01-any",
        "refreshToken": "sk-ant-ort01-any",
        "expiresAt": 99_999_999_999_999,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
}


@dataclass(frozen=True)
class Place:
    """A service whose account is not logged in, and a model that answers."""

    service: Installed
    user: Path
    model: ScriptedModel

    def ask(self, program: str) -> dict[str, Any]:
        """Return the ended job of a program's agent."""
        job = self.service.json("agent", "ask", f"{program}-dev", "hello", "--repo", "acme/shop")["job_id"]
        return self.service.wait_until_ended(job)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if not available():
        need(*PROGRAMS)
    folder = tmp_path_factory.mktemp("nobody")
    service, user = set_up(folder), folder / "user"
    user.mkdir()
    with ScriptedModel({}) as model, pytest.MonkeyPatch.context() as patch:
        for known in TABLE.values():
            for name in (known.home_variable, *known.keys, *known.settings):
                patch.delenv(name, raising=False)
        service.extra.update(HOME=str(user), ANTHROPIC_BASE_URL=model.url())
        lines = []
        for program, command in available().items():
            lines += [f"[runtimes.{PROGRAMS[program]}]", f"command = {json.dumps([command])}"]
            lines += [f"read = {json.dumps([str(Path(command).parent)])}", 'hosts = ["*", "127.0.0.1:%s"]']
        port = model.url().rpartition(":")[2]
        service.home.joinpath("config.toml").write_text("\n".join(lines).replace("%s", port))
        try:
            for program in available():
                words = ("--runtime", PROGRAMS[program], "--repo", "acme/shop")
                assert "is not logged in" in service("agent", "add", f"{program}-dev", *words).stderr
            service("daemon", "start")
            yield Place(service, user, model)
        finally:
            service("daemon", "stop")


@pytest.mark.parametrize("program", PROGRAMS)
def test_where_nobody_has_logged_in_the_job_is_blocked_at_once_with_the_command(place: Place, program: str) -> None:
    need(program)
    ended = place.ask(program)
    assert ended["state"] == "blocked"
    assert f"{program} is not logged in (try: {TABLE[program].login}, or set " in ended["reason"]
    assert ended["ended_at"] - ended["started_at"] < 5
    assert TABLE[program].login in place.service("attention").stdout


def test_a_login_that_is_not_valid_any_more_is_said_soon(place: Place) -> None:
    need("claude")
    login = place.user / ".claude" / ".credentials.json"
    login.parent.mkdir(exist_ok=True)
    login.write_text(json.dumps(LOGIN))
    begun = time.monotonic()
    words = ("agent", "ask", "claude-dev", "hello [[fake:http-401]]", "--repo", "acme/shop")
    job = place.service.json(*words)["job_id"]
    ended = place.service.wait_until_ended(job)
    assert ended["state"] == "blocked", ended["reason"]
    assert "try: claude /login" in ended["reason"]
    assert time.monotonic() - begun < GIVES_UP_BY_ITSELF / 3


def test_after_the_login_a_retry_goes_on(place: Place) -> None:
    need("claude")
    login = place.user / ".claude" / ".credentials.json"
    login.unlink(missing_ok=True)
    blocked = place.ask("claude")
    assert "is not logged in" in blocked["reason"]
    login.parent.mkdir(exist_ok=True)
    login.write_text(json.dumps(LOGIN))
    place.service("job", "retry", blocked["job_id"])
    place.service.wait_for(lambda: place.service.json("job", "show", blocked["job_id"])["state"] == "succeeded")
