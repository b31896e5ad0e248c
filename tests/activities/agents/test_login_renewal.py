"""The operator's own program renews the operator's login before it expires; jobs never do (ruling N2)."""

import base64
import fcntl
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from activities.agents import login_renewal
from activities.agents.adapter import Adapter
from activities.runtimes.known_runtimes import PROGRAMS
from activities.runtimes.programs import login_expires
from tests.activities.agents.recorded import a_call, a_run, adapter
from tests.waiting import wait_for

pytestmark = pytest.mark.ruling("N2")

NAMES = {"codex": "auth.json", "claude": ".credentials.json", "kimi": "credentials/kimi-code.json"}
ENDS = {"renews": "renew()", "fails": "sys.exit(3)", "says yes": "", "hangs": "time.sleep(3600)"}

STAND_IN = """#!{python}
import json, os, pathlib, sys, time
here = pathlib.Path(os.environ["HOME"])
call = {{"pid": os.getpid(), "stdin": sys.stdin.read(), "folder": os.listdir(), "env": dict(os.environ)}}
with open(here / "calls", "a") as calls: calls.write(json.dumps(call) + "\\n")
def renew():
    time.sleep(0.2)
    new = here / "new"
    new.write_text((here / "next").read_text())
    new.replace({login!r})
{ends}
"""


def token(expires: float, words: str = "") -> str:
    """Return a JSON Web Token."""
    part = base64.urlsafe_b64encode(json.dumps({"exp": int(expires), "words": words}).encode()).rstrip(b"=").decode()
    return f"e30.{part}.c2ln"


def login(program: str, expires: float, renews: str = "renews") -> dict[str, Any]:
    """Return the content of a login's file."""
    match program:
        case "codex":
            return {"tokens": {"access_token": token(expires), "refresh_token": renews}}
        case "claude":
            return {
                "claudeAiOauth": {
                    "accessToken": f"t{expires}",
                    "refreshToken": renews,
                    "expiresAt": int(expires * 1000),
                },
                "mcpOAuth": {"s": {"refreshToken": "r", "expiresAt": 1}},
            }
        case _:
            return {"access_token": f"t{expires}", "refresh_token": renews, "expires_at": int(expires)}


def access_token(text: str) -> str:
    """Return the access token in a login's file."""
    content = json.loads(text)
    content = content.get("tokens", content.get("claudeAiOauth", content))
    return str(content.get("access_token", content.get("accessToken")))


class Operator:
    """The operator's home, with a login, and a stand-in for the program that renews it."""

    def __init__(self, folder: Path, program: str, expires: float, ends: str = "renews") -> None:
        self.folder, self.program = folder, program
        self.path = folder / PROGRAMS[program].home_folder / NAMES[program]
        self.path.parent.mkdir(parents=True)
        self.environ = {"HOME": str(folder), "PATH": f"{folder}/bin:/usr/bin:/bin", "SERVICE_JOB_ID": "job-1"}
        self.log_in(expires)
        (folder / "next").write_text(json.dumps(login(program, time.time() + 3600)))
        self.behave(ends)

    def log_in(self, expires: float, renews: str = "renews") -> None:
        self.path.write_text(json.dumps(login(self.program, expires, renews)))

    def behave(self, ends: str) -> None:
        command = self.folder / "bin" / self.program
        command.parent.mkdir(exist_ok=True)
        command.write_text(STAND_IN.format(python=sys.executable, login=str(self.path), ends=ENDS[ends]))
        command.chmod(0o700)

    def driver(self, environ: dict[str, str] | None = None, **section: object) -> Adapter:
        return adapter(self.program, self.environ | (environ or {}), **section)

    def calls(self) -> list[dict[str, Any]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def expires(self) -> float:
        return login_expires(PROGRAMS[self.program], self.environ) or 0.0


@pytest.fixture(autouse=True)
def _no_failures() -> Iterator[None]:
    login_renewal._failures.clear()
    yield
    login_renewal._failures.clear()


def failures_of(folder: Path) -> list[login_renewal._FailedRenewal]:
    """Return the failures of logins below a test's folder; a thread of an earlier test may still add its own."""
    return [failure for home, failure in login_renewal._failures.items() if home.is_relative_to(folder)]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("left", [-3600.0, 60.0])
def test_ten_jobs_at_once_renew_an_expired_login_once_and_have_the_new_one(
    tmp_path: Path, program: str, left: float, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator(tmp_path, program, time.time() + left)
    caplog.set_level(logging.INFO)

    def start(number: int) -> str:
        driver = operator.driver()
        driver.renew_login()
        call = a_call(tmp_path / str(number), a_run(program))
        driver.launch(call)
        return (call.home / NAMES[program]).read_text()

    with ThreadPoolExecutor(10) as pool:
        copies = set(pool.map(start, range(10)))
    (call,) = operator.calls()
    (copy,) = copies
    assert operator.expires() > time.time() + 3000
    assert access_token(copy) == access_token(operator.path.read_text())
    assert "renews" not in copy
    assert call["folder"] == ["input.md"]
    assert call["env"].get("SERVICE_JOB_ID") is None
    renewal = PROGRAMS[program].renewal
    assert renewal
    assert call["stdin"] == renewal.text
    asked = " by asking it for one word" if program == "kimi" else ""
    assert f"renewed the login of {program}{asked}" in caplog.messages


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_login_of_a_running_program_is_renewed_in_the_background_and_followed(tmp_path: Path, program: str) -> None:
    operator = Operator(tmp_path, program, time.time() + 3000)
    driver, call = operator.driver(), a_call(tmp_path, a_run(program))
    driver.launch(call)
    driver.follow_login(call)
    operator.log_in(time.time() + 60)
    old = access_token(operator.path.read_text())

    def renewed() -> bool:
        driver.follow_login(call)
        return access_token(operator.path.read_text()) != old

    wait_for(renewed)
    driver.follow_login(call)
    assert access_token((call.home / NAMES[program]).read_text()) == access_token(operator.path.read_text())
    assert len(operator.calls()) == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_started_where_no_login_expires_or_it_is_not_to_be_renewed(tmp_path: Path, program: str) -> None:
    operator = Operator(tmp_path, program, time.time() + login_renewal.MARGIN + 60)
    operator.driver().renew_login()
    operator.log_in(time.time() - 60)
    operator.driver({PROGRAMS[program].keys[0]: "key"}).renew_login()
    operator.driver(renew_login=False).renew_login()
    operator.driver(renew_login=False).follow_login(a_call(tmp_path, a_run(program)))
    operator.log_in(time.time() - 60, renews="")
    operator.driver().renew_login()
    operator.path.write_text("{cut o")
    operator.driver().renew_login()
    operator.path.unlink()
    operator.driver().renew_login()
    assert operator.calls() == []


@pytest.mark.parametrize("ends", ["fails", "hangs", "says yes"])
def test_after_a_failure_the_next_try_waits_twice_as_long_and_a_new_login_begins_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(login_renewal, "SECONDS", 5.0 if ends == "hangs" else login_renewal.SECONDS)
    operator = Operator(tmp_path, "claude", time.time() - 60, ends)
    driver, now = operator.driver(), time.monotonic()
    driver.renew_login()
    driver.renew_login()
    (call,) = operator.calls()
    with pytest.raises(ProcessLookupError):
        os.kill(call["pid"], 0)
    assert any("the login of claude was not renewed: auth status" in line for line in caplog.messages)
    monkeypatch.setattr(time, "monotonic", lambda: now + 2 * login_renewal.AT_FIRST)
    driver.renew_login()
    driver.renew_login()
    assert len(operator.calls()) == 2
    (failure,) = failures_of(tmp_path)
    assert failure.wait == 2 * login_renewal.AT_FIRST
    operator.behave("renews")
    driver.renew_login()
    assert len(operator.calls()) == 2
    operator.log_in(time.time() - 30)
    driver.renew_login()
    assert len(operator.calls()) == 3
    assert operator.expires() > time.time()


def test_a_program_that_was_asked_and_failed_is_asked_again_and_a_new_login_begins_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, now = Operator(tmp_path, "kimi", time.time() - 60, "fails"), time.monotonic()
    operator.driver().renew_login()
    monkeypatch.setattr(time, "monotonic", lambda: now + 2 * login_renewal.AT_FIRST)
    operator.driver().renew_login()
    assert len(operator.calls()) == 2
    operator.log_in(time.time() - 30)
    operator.driver().renew_login()
    assert len(operator.calls()) == 3
    (failure,) = failures_of(tmp_path)
    assert failure.wait == login_renewal.AT_FIRST


def test_a_program_that_answered_without_renewing_is_not_asked_again_for_this_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses another login, and each word costs a little."""
    operator, now = Operator(tmp_path, "kimi", time.time() - 60, "says yes"), time.monotonic()
    operator.driver().renew_login()
    monkeypatch.setattr(time, "monotonic", lambda: now + 1_000_000)
    operator.driver().renew_login()
    assert len(operator.calls()) == 1


def test_a_failure_holds_up_no_job(tmp_path: Path) -> None:
    operator = Operator(tmp_path, "claude", time.time() - 60, "fails")
    driver, call = operator.driver(), a_call(tmp_path, a_run("claude"))
    driver.renew_login()
    driver.launch(call)
    assert "claudeAiOauth" in (call.home / ".credentials.json").read_text()
    operator.folder.joinpath("bin/claude").write_bytes(b"no program")
    login_renewal._failures.clear()
    driver.renew_login()
    driver.renew_login()
    operator.folder.joinpath("bin/claude").unlink()
    login_renewal._failures.clear()
    driver.renew_login()
    assert failures_of(tmp_path) == []


def test_another_process_s_renewal_is_waited_for(tmp_path: Path) -> None:
    operator = Operator(tmp_path, "claude", time.time() - 60)
    driver, call = operator.driver(), a_call(tmp_path, a_run("claude"))
    descriptor = os.open(operator.path.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    driver.launch(call)
    driver.follow_login(call)
    waiting = threading.Thread(target=driver.renew_login)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    assert operator.calls() == []
    operator.log_in(time.time() + 3600)
    os.close(descriptor)
    waiting.join(60)
    assert operator.calls() == []
