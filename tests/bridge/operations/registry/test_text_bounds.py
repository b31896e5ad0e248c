"""Texts of people are bounded by the contract's table before anything is stored (ruling B6)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.settings.home import Home
from bridge.operations.orders import new_jobs
from bridge.operations.registry import agents, repos
from bridge.operations.registry.agents import NewAgent
from bridge.operations.registry.arguments import within_bound
from bridge.operations.service import Service
from workflows.contract.size_limits import BOUNDS
from workflows.model.errors import UsageError

pytestmark = pytest.mark.ruling("B6")

FIELDS = [("model", "model"), ("effort", "effort"), ("role", "role"), ("template", "agent_template")]


def _only(field: str, text: str) -> dict[str, Any]:
    return {field: text}


@pytest.mark.parametrize(("field", "of"), FIELDS)
def test_an_agent_is_registered_with_texts_up_to_their_bounds(home: Home, field: str, of: str) -> None:
    service, most = Service(home), BOUNDS[of].characters
    agents.add(service, replace(NewAgent(name="a", runtime="runtime_a"), **_only(field, "x" * most)))
    with pytest.raises(UsageError, match=f"must be at most {most:,} characters, not {most + 1:,}"):
        agents.add(service, replace(NewAgent(name="b", runtime="runtime_a"), **_only(field, "x" * (most + 1))))


def test_a_repository_s_name_fits_its_column(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at most 200 characters, not 201"):
        repos.add(Service(home), f"{'o' * 100}/{'r' * 100}", tmp_path)


def test_what_is_asked_is_made_storable(home: Home) -> None:
    assert new_jobs.storable_message(Service(home), "look\udcff\0here") == "look\ufffd\ufffdhere"
    assert within_bound("label", "the label", "a\ud800") == "a\ufffd"
