"""The home belongs to its account and is private, or nothing in it is read (ruling N8)."""

import os
import stat
from pathlib import Path

import pytest

from activities.sealing import seal_key
from activities.settings import secure_home
from activities.settings.home import Home
from activities.settings.load import load
from bridge.machine import token, tokens_file
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


def test_a_folder_that_all_accounts_share_is_left_as_it_is(root: Path) -> None:
    root.chmod(0o1777)
    with pytest.raises(RefusedError, match="is shared by all accounts") as refused:
        load(Home(root))
    assert refused.value.hint == f"export SERVICE_HOME={root}/service"
    (root / "service").mkdir(mode=0o700)
    assert load(Home(root / "service")).settings


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_home_that_others_may_write_to_is_not_read(root: Path, mode: int) -> None:
    root.chmod(mode)
    with pytest.raises(RefusedError, match="other accounts may write") as refused:
        load(Home(root))
    assert f"chmod go-w {root}" in refused.value.hint


def test_a_home_that_others_could_exchange_is_not_read(root: Path) -> None:
    root.parent.chmod(0o777)
    with pytest.raises(RefusedError, match=f"may write to {root.parent}"):
        load(Home(root))
    root.parent.chmod(0o1777)  # like /tmp: nobody can rename files of others
    assert load(Home(root)).settings.notify.command == ["/tmp/theirs"]


def test_a_home_that_others_may_only_read_is_closed(root: Path) -> None:
    root.chmod(0o755)
    Home(root).ensure()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_home_that_was_open_is_told_closed_and_its_secrets_are_replaced(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = Home(root)
    before, key = token.ensure(home).read_text(), seal_key.ensure(root)
    caplog.clear()
    root.chmod(0o755)
    home.ensure()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert home.bridge_token.read_text() != before
    assert token.Token(home.bridge_token).accepts(home.bridge_token.read_bytes())
    assert home.seal_key_open.exists()
    assert seal_key.read(root) == key, "what is under way was sealed with it"
    assert f"the service home {root} was open to other accounts (mode 755)" in caplog.text
    [opened] = secure_home.every(root, 0.0)
    assert "token was replaced" in opened.said
    known = home.bridge_token.read_text()
    home.ensure()
    assert home.bridge_token.read_text() == known, "once"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666])
@pytest.mark.parametrize("name", ["bridge.token", "seal.key", "seal.key.d", "bridge.tokens"])
def test_a_secret_that_was_open_is_closed_by_itself_and_replaced(
    root: Path, caplog: pytest.LogCaptureFixture, mode: int, name: str
) -> None:
    home = Home(root)
    before = token.ensure(home).read_text()
    seal_key.ensure(root)
    seal_key.add(root, seal_key.new())
    named = tokens_file.add(home, "ci", "read")
    (root / name).chmod(mode)
    home.ensure()
    assert {stat.S_IMODE(path.lstat().st_mode) & 0o077 for path in root.iterdir()} == {0}
    assert (home.bridge_token.read_text() != before) == (name == "bridge.token")
    assert home.seal_key_open.exists() == name.startswith("seal.key")
    known = tokens_file.NamedTokens(home).find(named.encode())
    assert (known is None) == (name == "bridge.tokens" and bool(mode & 0o022)), "a digest opens nothing"
    assert f"{root / name} was open to other accounts (mode {mode:o})" in caplog.text


def test_files_are_closed_by_themselves(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody could read files in a private home, so they are not reported."""
    for name in ("store.db", "store.db-wal", "temporal.db", "config.toml"):
        (root / name).touch()
        (root / name).chmod(0o666)
    (root / "runs").mkdir()
    (root / "runs").chmod(0o755)
    Home(root).ensure()
    assert {stat.S_IMODE(path.lstat().st_mode) & 0o077 for path in root.iterdir()} == {0}
    assert caplog.text == ""
    assert secure_home.every(root, 0.0) == []


def test_the_folder_for_agents_stays_readable(root: Path) -> None:
    Home(root).boxes.mkdir()
    Home(root).boxes.chmod(0o755)
    Home(root).ensure()
    assert stat.S_IMODE(Home(root).boxes.stat().st_mode) == 0o755


def test_nothing_is_closed_through_a_link(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    outside.chmod(0o644)
    (root / "bridge.tokens").symlink_to(outside)
    os.mkfifo(root / "pipe")
    (root / "pipe").chmod(0o666)
    Home(root).ensure()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["logs", "audit"])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_place_of_the_logs_is_refused(root: Path, tmp_path: Path, name: str, there: bool) -> None:
    if there:
        (tmp_path / "elsewhere").mkdir()
    (root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match=f"{root / name} is a link") as refused:
        Home(root).ensure()
    assert refused.value.hint == f"rm {root / name}"
    assert not (tmp_path / "elsewhere").exists() or not list((tmp_path / "elsewhere").iterdir())


def test_a_link_to_a_home_is_judged_by_where_it_leads(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert load(Home(tmp_path / "link")).settings.notify.command
    root.chmod(0o777)
    with pytest.raises(RefusedError):
        load(Home(tmp_path / "link"))


def test_a_home_that_is_not_there_yet_is_made_private(tmp_path: Path) -> None:
    assert load(Home(tmp_path / "new")).settings.notify.command == []
    assert stat.S_IMODE(Home(tmp_path / "new").ensure().root.stat().st_mode) == 0o700
