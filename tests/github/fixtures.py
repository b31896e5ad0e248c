"""A GitHub for a test, with the repository acme/tool, ann who writes there, bob who only reads, and a GitHub App.

A conftest elsewhere takes them by

from tests.github.fixtures import github as github
from tests.github.fixtures import hub as hub
"""

from collections.abc import Iterator

import pytest

from tests.github.description import Description
from tests.github.hub import Hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        peopled(made)
        yield made
    assert made.broken == []


@pytest.fixture(params=["hub", pytest.param("described", marks=pytest.mark.long)])
def github(request: pytest.FixtureRequest, hub: Hub) -> Iterator[Hub]:
    """Run a scenario on the Hub; in the long ring also with every request and reply validated against GitHub's own
    description, if that is installed.
    """
    if request.param == "hub":
        yield hub
        return
    hub.described = Description()
    yield hub
    violations = "\n".join(hub.described.violations)
    assert violations == "", violations


def peopled(hub: Hub) -> None:
    hub.repo("acme/tool")
    hub.user("ann", role="write")
    hub.user("bob")
    hub.app()
