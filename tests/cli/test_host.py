"""`service host` in words."""

import pytest

from activities.settings.home import Home
from bridge.operations.registry import hosts
from cli.main import main


@pytest.mark.ruling("Q1")
def test_a_removal_says_what_it_does_not_revoke(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE_STORE_URL", "postgresql://service@db/service")
    monkeypatch.setattr(hosts, "remove", lambda service, name: None)
    assert main(["host", "remove", "web-3"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "web-3 is forgotten; nothing on that machine was changed" in shown
    assert "it still has the seal key and the database's password, so it can speak for all hosts" in shown
    assert "next: service help hosts" in shown


def test_on_one_host_a_removal_revokes_all_there_is(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hosts, "remove", lambda service, name: None)
    assert main(["host", "remove", "old"]) == 0
    assert capsys.readouterr().out == "old is forgotten; nothing on that machine was changed\n"
