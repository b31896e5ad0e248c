"""The dashboard's URL."""

import pytest

from activities.runs.regular_files import write_private
from activities.settings import ready
from activities.settings.home import Home
from activities.settings.load import load
from activities.settings.model import BridgeSection

pytestmark = pytest.mark.ruling("M6")


def say(home: Home, address: str | None) -> None:
    ready.say(home.bridge_ready, load(home).reading.in_use(), address)


def test_it_is_where_the_bridge_listens(bare_home: Home) -> None:
    say(bare_home, "127.0.0.1:8799")
    assert ready.dashboard_url(bare_home, BridgeSection()) == "http://127.0.0.1:8799"


@pytest.mark.parametrize(
    ("listens", "reached"),
    [("0.0.0.0:8791", "127.0.0.1:8791"), ("[::]:8791", "[::1]:8791"), ("[::1]:1", "[::1]:1"), ("lan:2", "lan:2")],
)
def test_a_bridge_on_all_addresses_is_reached_on_loopback(bare_home: Home, listens: str, reached: str) -> None:
    say(bare_home, listens)
    assert ready.dashboard_url(bare_home, BridgeSection()) == f"http://{reached}"


def test_the_settings_know_better(bare_home: Home) -> None:
    say(bare_home, "127.0.0.1:8799")
    section = BridgeSection(url="https://agents.example.org")
    assert ready.dashboard_url(bare_home, section) == "https://agents.example.org"


def test_without_a_bridge_it_is_nowhere(bare_home: Home) -> None:
    assert ready.dashboard_url(bare_home, BridgeSection()) == ""
    say(bare_home, "127.0.0.1:8799")
    gone = ready.Ready(pid=1, identity="somebody else", address="127.0.0.1:8799")
    write_private(bare_home.bridge_ready, gone.model_dump_json())
    assert ready.dashboard_url(bare_home, BridgeSection()) == ""


@pytest.mark.parametrize("url", ["agents.example.org", "https://a/b", "https://ann:pw@a", "ftp://a", "https://a b"])
def test_an_address_is_a_scheme_and_a_host(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        BridgeSection(url=url)
