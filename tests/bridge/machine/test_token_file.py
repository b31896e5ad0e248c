"""The token's file must be no link and not another account's (ruling N8)."""

import os
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.machine import token
from workflows.model.errors import RefusedError

pytestmark = pytest.mark.ruling("N8")


def test_a_link_in_the_place_of_the_token_is_neither_read_nor_closed(home: Home, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("known to somebody")
    known.chmod(0o644)
    home.bridge_token.symlink_to(known)
    assert not token.Token(home.bridge_token).accepts(b"known to somebody")
    with pytest.raises(RefusedError, match="is a link") as refused:
        token.ensure(home)
    assert f"rm {home.bridge_token}" in refused.value.hint
    assert known.stat().st_mode & 0o777 == 0o644
    assert not token.rotate(home).is_symlink()
    assert token.Token(home.bridge_token).accepts(home.bridge_token.read_bytes().strip())
    assert known.read_text() == "known to somebody"


def test_a_token_of_another_account_opens_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = token.ensure(home).read_bytes().strip()
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert not token.Token(home.bridge_token).accepts(shown)


@pytest.mark.parametrize("content", ["", "\n", None])
def test_without_a_token_nothing_is_accepted_not_even_nothing(home: Home, content: str | None) -> None:
    if content is not None:
        token.ensure(home).write_text(content)
    assert not token.Token(home.bridge_token).accepts(b"")


def test_a_token_that_others_could_read_is_closed(home: Home) -> None:
    token.ensure(home).chmod(0o644)
    assert token.ensure(home).stat().st_mode & 0o777 == 0o600
