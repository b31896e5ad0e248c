"""The account of agents gets the paths that the box names, and no path that an agent put in their place."""

import os
from pathlib import Path

import pytest

from activities.boxes.ownership import LinkError, hand_over, let_read, ways
from tests.activities.boxes.world import UID

pytestmark = pytest.mark.ruling("N2")

SOMEBODY = 64_321


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Make a folder that agents may write, with a lent one in it; beside it, a private one."""
    if os.geteuid():
        pytest.skip("only root hands anything over")
    (tmp_path / "cache/tool/here").mkdir(parents=True)
    (tmp_path / "private/here").mkdir(parents=True)
    os.chown(tmp_path / "cache", UID, UID)
    return tmp_path / "cache"


def is_firm(path: object) -> bool:
    return ways(UID)(str(path)).firm


def owner(path: Path) -> int:
    return path.lstat().st_uid


def test_all_that_is_in_a_folder_is_handed_over_and_back(cache: Path) -> None:
    (cache / "tool/here/file").touch()
    for uid in (UID, 0):
        hand_over((cache / "tool/here",), uid)
        assert [owner(cache / name) for name in ("tool", "tool/here", "tool/here/file")] == [0, uid, uid]


def test_a_link_on_the_way_that_an_agent_may_have_made_is_refused(cache: Path) -> None:
    (cache / "tool").rename(cache / "other")
    (cache / "tool").symlink_to(cache.parent / "private")
    with pytest.raises(LinkError, match=rf"{cache}/tool leads elsewhere by a link"):
        hand_over((cache / "tool/here",), UID)
    assert owner(cache.parent / "private/here") == 0


def test_a_link_in_its_place_is_not_followed(cache: Path) -> None:
    (cache / "link").symlink_to(cache.parent / "private")
    hand_over((cache / "link",), UID)
    assert owner(cache.parent / "private") == 0


def test_a_link_of_the_operator_s_is_followed(cache: Path) -> None:
    (cache.parent / "link").symlink_to(cache.parent / "private")
    hand_over((cache.parent / "link/here",), UID)
    assert owner(cache.parent / "private/here") == UID


@pytest.mark.parametrize(
    ("owner", "mode", "firm"),
    [(0, 0o755, True), (0, 0o777, False), (0, 0o1777, True), (0, 0o775, True), (UID, 0o755, False)],
)
def test_what_makes_a_way_firm(cache: Path, owner: int, mode: int, firm: bool) -> None:
    """The entry is root's: in a folder with the sticky bit nobody else may replace it."""
    folder = cache.parent / "private"
    os.chown(folder, owner, 0)
    folder.chmod(mode)
    assert is_firm(folder / "here") is firm
    os.chown(folder / "here", UID, UID)
    assert is_firm(folder / "here") is (firm and mode != 0o1777)


def test_its_own_group_may_replace_what_stands_in_a_folder(cache: Path) -> None:
    folder = cache.parent / "private"
    folder.chmod(0o775)
    os.chown(folder, SOMEBODY, UID)
    assert not is_firm(folder / "here")


def test_a_way_that_goes_round_in_links_is_not_firm(cache: Path) -> None:
    (cache.parent / "a").symlink_to("b")
    (cache.parent / "b").symlink_to("../" + cache.parent.name + "/a")
    assert not is_firm(cache.parent / "a")
    (cache.parent / "up").symlink_to("private/./here/../../private")
    assert is_firm(cache.parent / "up")
    assert is_firm(f"//{cache.parent}/")
    assert not is_firm("nowhere"), "only a whole path is"


def test_links_of_the_operator_s_before_the_agent_s_folder_are_no_reason_to_refuse(cache: Path) -> None:
    (cache.parent / "link").symlink_to(cache)
    hand_over((cache.parent / "link/tool/here",), UID)
    assert owner(cache / "tool/here") == UID
    assert ways(UID)(f"{cache.parent}/link/tool/here") == (f"{cache}/tool/here", False)


def test_private_settings_can_be_read_by_agents_and_by_nobody_else(cache: Path) -> None:
    private = cache.parent / "private"
    for name, mode in {"config": 0o600, "run": 0o700, "open": 0o644, "here/file": 0o400}.items():
        (private / name).touch()
        (private / name).chmod(mode)
    (private / "here").chmod(0o700)
    (private / "link").symlink_to(cache)
    let_read((private / "config", private / "here", private / "run", private / "open", private / "link"), UID)
    modes = {path.name: (path.stat().st_mode & 0o777, path.stat().st_gid) for path in private.rglob("*")}
    assert modes["config"] == (0o640, UID)
    assert modes["run"] == modes["here"] == (0o750, UID)
    assert modes["file"] == (0o440, UID)
    assert modes["open"] == (0o644, 0)
    assert {owner(path) for path in private.rglob("*")} == {0}
