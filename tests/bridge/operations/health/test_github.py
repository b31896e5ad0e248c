"""Doctor's check of GitHub: identity, permissions, quota, failed writes (ruling L8)."""

import os
import time
from pathlib import Path

import pytest

from activities.github.client import UnknownAccountError
from activities.settings import ready
from activities.settings.home import Home
from activities.store.github import account
from activities.store.registry import repo_rows
from bridge.operations.health import doctor, github
from bridge.operations.health.findings import Finding, Level
from bridge.operations.service import Service
from tests.bridge import github_seeds
from tests.github.fixtures import hub as hub
from tests.github.hub import Hub
from tests.github.keys import private_key

pytestmark = pytest.mark.ruling("L8")


def made(home: Home, hub: Hub, more: str = "", account: str = 'token_env = "DESK_TOKEN"') -> Service:
    home.config.write_text(f'[github]\n{account}\napi_url = "{hub.address}"\n{more}')
    service = Service(home)
    repo_rows.put(service.store, "tool", "/srv/tool", "here", "acme/tool")
    ready.say(home.github_ready, service.reading.in_use())
    return service


def found(service: Service) -> list[Finding]:
    return list(doctor.github(Service(service.home)))


def said(service: Service, level: Level = Level.OK) -> list[str]:
    return [each.says for each in found(service) if each.level is level]


def test_without_an_account_it_says_nothing(home: Home) -> None:
    assert list(doctor.github(Service(home))) == []


def test_with_the_token_at_hand_it_asks_github_itself(home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", hub.tokens["ann"])
    service = made(home, hub)
    runs, who, quota, may = said(service)
    assert runs == f"process {os.getpid()}, speaks to {hub.address}"
    assert who == "ann, a user"
    assert " of 5000 requests left until " in quota
    assert may == "acme/tool: may pull, triage, push"
    assert doctor.healthy(found(service))
    assert hub.tokens["ann"] not in str(found(service))


@pytest.mark.parametrize(
    ("more", "lacks"),
    [
        ("", ["comments need write", "what an author may order"]),
        ('comments = "never"\ncommands = []\n', []),
        ('comments = "never"\ncommands = []\npublish = "on_success"\ncheck = true\n', ["commit status", "to publish"]),
    ],
)
def test_what_is_switched_on_and_not_permitted_is_wrong(
    home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch, more: str, lacks: list[str]
) -> None:
    monkeypatch.setenv("DESK_TOKEN", hub.tokens["bob"])
    wrong = said(made(home, hub, more), Level.WRONG)
    assert len(wrong) == bool(lacks)
    for line, expected in zip(wrong[0].splitlines()[1:] if wrong else [], lacks, strict=True):
        assert expected in line


def test_a_user_gives_the_verdict_as_a_commit_status(home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", hub.tokens["ann"])
    assert said(made(home, hub, "check = true\n"))[-1].startswith("only a GitHub App may make check runs")


def test_a_token_is_not_told_to_let_an_app_write_checks(home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub refuses check runs of every token: the commit status is all there is to have."""
    monkeypatch.setenv("DESK_TOKEN", hub.tokens["ann"])
    service = made(home, hub, "check = true\n")
    account.note(service.store, login="ann", kind="user", seen_at=time.time(), checks_refused=True)
    assert "App" not in "".join(each.fix for each in found(service))
    assert doctor.healthy(found(service))
    assert said(service, Level.WARNING) == []


def test_a_repository_it_cannot_see_is_wrong(home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", hub.tokens["ann"])
    service = made(home, hub)
    repo_rows.put(service.store, "gone", "/srv/gone", "here", "acme/gone")
    assert said(service, Level.WRONG) == ["acme/gone: the account cannot see it"]


def test_an_app_is_asked_for_what_its_installation_was_granted(
    home: Home, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key.pem"
    key.write_text(private_key())
    key.chmod(0o600)
    app = f'app_id = "4242"\ninstallation_id = "{hub.app(4242, "desk")}"\nprivate_key_file = "{key}"'
    service = made(home, hub, "check = true\n", app)
    _, who, _, may = said(service)
    assert who == "desk[bot], a GitHub App"
    assert may.startswith("acme/tool: may checks: write, contents: write, issues: write")
    asked = github._app_lacks(service.settings.github, {"issues": "write", "contents": "read"})
    assert list(asked) == ["comments and commands need pull_requests: write", "the check needs checks: write"]
    key.chmod(0o644)
    assert any("open to others" in each for each in said(service, Level.WRONG))


def test_an_app_that_is_refused_is_told_of_its_key_and_not_of_a_token(
    home: Home, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key.pem"
    key.write_text(private_key())
    key.chmod(0o600)

    def refused(*_: object) -> None:
        raise UnknownAccountError("the account of [github] is refused: GitHub answers 401", 0.0)

    monkeypatch.setattr(github, "ask", refused)
    app = f'app_id = "4242"\ninstallation_id = "1"\nprivate_key_file = "{key}"'
    fixes = [each.fix for each in found(made(home, hub, "", app)) if each.level is Level.WRONG]
    put_right = "put app_id, installation_id and private_key_file of [github] right"
    assert fixes == [f"{put_right}, then: {github.RESTART}"]
    monkeypatch.setenv("DESK_TOKEN", "ghp_nobody")
    fixes = [each.fix for each in found(made(home, hub)) if each.level is Level.WRONG]
    assert fixes == [f"put a valid token into DESK_TOKEN, then: {github.RESTART}"]


def test_without_the_token_it_tells_what_the_process_saw_and_asks_nothing(home: Home, hub: Hub) -> None:
    service = made(home, hub)
    assert said(service)[1:] == ["DESK_TOKEN is not set here, so GitHub itself is not asked"]
    assert said(service, Level.WARNING) == ["who the account is was never seen"]
    now = time.time()
    account.note(service.store, login="desk", kind="user", seen_at=now, quota=5000, remaining=12, reset_at=now + 60)
    account.begin_reading(service.store, "acme/tool", 1.0)
    account.note_reading(service.store, "acme/tool", error="GitHub answers 404: Not Found")
    assert any(each.startswith("desk, a user, as its process saw it at ") for each in said(service))
    assert any(each.startswith("12 of 5000 requests left until ") for each in said(service, Level.WARNING))
    assert said(service, Level.WRONG) == ["acme/tool, as its process saw it: GitHub answers 404: Not Found"]
    assert hub.requests == []


def test_a_token_that_is_refused_is_wrong(home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", "ghp_nobody")
    [refused] = said(made(home, hub), Level.WRONG)
    assert refused.startswith("the account of [github] is refused: GitHub answers 401")
    assert "ghp_nobody" not in refused


def test_a_github_that_is_away_keeps_nobody_waiting(home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", hub.tokens["ann"])
    service = made(home, hub)
    account.note(service.store, login="ann", kind="user", seen_at=time.time())
    hub.delay("GET /user", 1.5)
    monkeypatch.setattr(github, "SECONDS", 0.5)
    findings = found(service)
    assert [each.says for each in findings if each.level is Level.WARNING] == [
        "GitHub has not answered everything within 0.5 s"
    ]
    assert any("as its process saw it" in each.says for each in findings)


def test_a_limit_says_until_when(home: Home, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", hub.tokens["ann"])
    service = made(home, hub)
    hub.secondary_limit("GET /user", retry_after=30)
    first = said(service, Level.WARNING)[0]
    assert first.startswith("GitHub asks to wait 30 s, until ")


def test_what_is_blocked_and_what_is_not_written_is_said_with_a_way_out(home: Home, hub: Hub) -> None:
    service = made(home, hub)
    now = time.time()
    account.note(service.store, login="desk", problem="GitHub answers 502", failing_since=now, blocked_until=now + 60)
    github_seeds.failed(service, "one")
    blocked, unwritten = (each for each in found(service) if each.level is Level.WARNING)
    assert blocked.says.startswith("GitHub answers 502, since ")
    assert "; asked again at " in blocked.says
    assert unwritten.says == "1 could not be written, the last: end on acme/shop#7: GitHub answers 403: no"
    assert unwritten.fix.endswith("service github sync --retry")


def test_a_process_that_does_not_run_is_said(home: Home, hub: Hub) -> None:
    service = made(home, hub)
    home.github_ready.unlink()
    first = found(service)[0]
    assert (first.level, first.fix) == (Level.WARNING, github.START)
