"""Title and text of a pull request or issue are read when work starts, and nothing fails without them (P3)."""

import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from activities.github import descriptions as reading
from activities.github.descriptions import TEXT_LIMIT, TITLE_LIMIT, describe
from activities.host.base import BoundWork
from activities.store.artifacts import Artifacts
from tests.github.hub import Hub
from tests.secrets.redaction_table import TOKENS

pytestmark = pytest.mark.ruling("P3")


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "home" / "artifacts")


def asked(hub: Hub, store: Engine, artifacts: Artifacts, token: str = "", **what: Any) -> BoundWork:
    token = token or hub.user("helper", role="write")
    return describe(BoundWork(github="acme/tool", base="c0ffee", **what), store, artifacts, hub.address, token)


def said(artifacts: Artifacts, binding: BoundWork) -> str:
    assert binding.about is not None
    assert binding.about.inline is None, "every leg of a tree carries it"
    return artifacts.read(binding.about)


def test_title_text_and_the_branch_it_goes_into(hub: Hub, store: Engine, artifacts: Artifacts) -> None:
    number = hub.pull("topic", title="Limit the rate", body="Ten a second.\r\n\nNot more.")
    binding = asked(hub, store, artifacts, pull_request=number)
    assert said(artifacts, binding) == "Limit the rate\n\nTen a second.\r\n\nNot more."
    assert (binding.into, binding.base) == ("main", "c0ffee")


def test_an_issue_has_them_too(hub: Hub, store: Engine, artifacts: Artifacts) -> None:
    number = hub.issue("It is slow", "At night.")
    binding = asked(hub, store, artifacts, issue=number)
    assert (said(artifacts, binding), binding.into) == ("It is slow\n\nAt night.", "")


def test_they_are_cut_and_their_secrets_kept_apart(hub: Hub, store: Engine, artifacts: Artifacts) -> None:
    token = TOKENS["GitHub personal"]
    number = hub.pull("topic", title="t" * 400, body=f"{token} {'x' * 9_000}")
    text = said(artifacts, asked(hub, store, artifacts, pull_request=number))
    title, _, body = text.partition("\n\n")
    assert title == "t" * TITLE_LIMIT
    assert token not in text
    assert f"[cut: {TEXT_LIMIT:,} of" in body
    assert body.endswith(f"the whole text is in https://github.com/acme/tool/pull/{number}]")


def test_without_an_answer_work_starts_all_the_same(
    hub: Hub, store: Engine, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = hub.pull()
    assert asked(hub, store, artifacts, pull_request=number + 1).about is None
    assert asked(hub, store, artifacts, token="ghp_of_nobody", pull_request=number).about is None
    monkeypatch.setattr(reading, "SECONDS", 0.2)
    hub.delay("GET /repos/*/pulls/*", 60)
    begun = time.monotonic()
    assert asked(hub, store, artifacts, pull_request=number) == BoundWork(
        pull_request=number, github="acme/tool", base="c0ffee"
    )
    assert time.monotonic() - begun < 30
    hub.down()
    assert asked(hub, store, artifacts, token="x", pull_request=number).about is None
