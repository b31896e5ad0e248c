"""The home is its account's own and private, or nothing in it is read (ruling N8)."""

import os
import stat
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.settings.load import load
from workflows.model.errors import RefusedError

pytestmark = pytest.mark.ruling("N8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    (made / "config.toml").write_text('[notify]\ncommand = ["/tmp/theirs"]\n')
    return made


def test_a_home_of_another_account_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: root.stat().st_uid + 1)
    for use in (load, Home.ensure):
        with pytest.raises(RefusedError, match="belongs to the account") as refused:
            use(Home(root))
        assert "run this as" in refused.value.hint


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_home_that_others_may_write_to_is_not_read(root: Path, mode: int) -> None:
    root.chmod(mode)
    with pytest.raises(RefusedError, match="other accounts may write") as refused:
        load(Home(root))
    assert f"chmod go-w {root}" in refused.value.hint


def test_a_home_that_others_could_exchange_is_not_read(root: Path) -> None:
    root.parent.chmod(0o777)
    with pytest.raises(RefusedError, match=f"may write to {root.parent}"):
        load(Home(root))
    root.parent.chmod(0o1777)  # as /tmp: nobody can rename what is not theirs
    assert load(Home(root)).settings.notify.command == ["/tmp/theirs"]


def test_a_home_that_others_may_only_read_is_closed(root: Path) -> None:
    root.chmod(0o755)
    Home(root).ensure()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_link_to_a_home_is_judged_by_where_it_leads(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert load(Home(tmp_path / "link")).settings.notify.command
    root.chmod(0o777)
    with pytest.raises(RefusedError):
        load(Home(tmp_path / "link"))


def test_a_home_that_is_not_there_yet_is_made_private(tmp_path: Path) -> None:
    assert load(Home(tmp_path / "new")).settings.notify.command == []
    assert stat.S_IMODE(Home(tmp_path / "new").ensure().root.stat().st_mode) == 0o700
