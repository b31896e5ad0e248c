"""A GitHub for a test, with the repository acme/tool, ann who writes there, bob who only reads, and a GitHub App.

A conftest elsewhere takes them by

from tests.github.fixtures import github as github
from tests.github.fixtures import hub as hub
"""

from collections.abc import Iterator

import pytest

from tests.github.description import Description
from tests.github.emulator import KNOWN, Emulator
from tests.github.hub import Hub
from tests.github.tools import need

GitHub = Hub | Emulator


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        peopled(made)
        yield made
    assert made.broken == []


@pytest.fixture(params=["hub", *(pytest.param(each, marks=pytest.mark.long) for each in ("described", "emulate"))])
def github(request: pytest.FixtureRequest) -> Iterator[GitHub]:
    """Run a scenario on both GitHubs: the Hub in every ring; in the long one also the Hub and the emulator with
    every request and reply validated against GitHub's own description, if they are installed.
    """
    made = Emulator() if request.param == "emulate" else Hub()
    if request.param != "hub":
        need("openapi")
        made.described = Description(KNOWN if request.param == "emulate" else ())
    with made:
        peopled(made)
        yield made
    found = "\n".join(made.described.violations if made.described else ())
    assert found == "", found
    assert made.broken == []


def peopled(github: GitHub) -> None:
    github.repo("acme/tool")
    github.user("ann", role="write")
    github.user("bob")
    github.app()
