"""Dashboard links: valid once, for five minutes, and not readable from the home's files (ruling M6)."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from activities.settings.home import Home
from bridge.machine import dashboard_link
from bridge.machine.dashboard_link import SECONDS

pytestmark = pytest.mark.ruling("M6")


def test_a_link_is_taken_once_by_the_name_it_was_made_with(bare_home: Home) -> None:
    code = dashboard_link.make(bare_home, "ann@desk")
    assert [dashboard_link.take(bare_home, code) for _ in range(2)] == ["ann@desk", None]


def test_of_many_who_open_it_at_once_one_comes_in(bare_home: Home) -> None:
    code = dashboard_link.make(bare_home, "ann")
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: dashboard_link.take(bare_home, code), range(32)))
    assert sorted(map(str, taken)) == ["None"] * 31 + ["ann"]


@pytest.mark.parametrize("code", ["", "x", "../../config.toml", "a/b", "\udcff", "é" * 5000])
def test_a_code_that_was_made_up_takes_nothing(bare_home: Home, code: str) -> None:
    dashboard_link.make(bare_home, "ann")
    assert dashboard_link.take(bare_home, code) is None
    assert len(list(bare_home.dashboard_links.iterdir())) == 1


def test_links_that_nobody_opened_are_forgotten(bare_home: Home) -> None:
    dashboard_link.make(bare_home, "ann")
    [old] = bare_home.dashboard_links.iterdir()
    before = time.time() - SECONDS - 1
    os.utime(old, (before, before))
    dashboard_link.make(bare_home, "bob")
    assert old not in list(bare_home.dashboard_links.iterdir())


def test_the_folder_is_its_owner_s_alone(bare_home: Home) -> None:
    dashboard_link.make(bare_home, "ann")
    assert bare_home.dashboard_links.stat().st_mode & 0o077 == 0
