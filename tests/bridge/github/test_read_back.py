"""GitHub's own command line reads back everything written: comments, the check run, the pull request (L3, L9, L10)."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.settings.home import Home
from bridge.github import orders
from bridge.operations.orders.resume import ResumeOutcome
from bridge.operations.service import Service
from tests.bridge.github.life import FINDINGS, live, opened, peopled
from tests.bridge.published import FACT, SHOP, TASK_BRANCH
from tests.github.gh import gh
from workflows.github.facts import fact_in
from workflows.model.orders import ResumeOrder

pytestmark = [pytest.mark.long, pytest.mark.ruling("L3", "L9", "L10")]


async def test_gh_reads_what_was_written(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resume(_: Service, order: ResumeOrder) -> ResumeOutcome:
        return ResumeOutcome("recorded", applied=True)

    monkeypatch.setattr(orders, "resume", resume)
    with peopled(home, tmp_path, "app") as (tree, desks):
        number, hub = opened(tree), tree.hub
        await live(tree, desks, number)

        def read(where: str) -> Any:
            words = ("api", "--paginate", f"repos/{SHOP}/{where}")
            return json.loads(gh(hub, hub.tokens["ann"], tmp_path, *words))

        marks = [mark for each in read(f"issues/{number}/comments") if (mark := fact_in(each["body"]))]
        assert [mark.rpartition("-")[2] for mark in marks][:2] == ["status", "pause"]
        assert marks[-1].endswith("-end")
        (check,) = read(f"commits/{hub.pull_of(number)['head']['sha']}/check-runs")["check_runs"]
        assert (check["name"], check["conclusion"]) == ("service/gate", "failure")
        notes = read(f"check-runs/{check['id']}/annotations")
        assert [each["start_line"] for each in notes] == [each["line"] for each in FINDINGS]
        (pull,) = read(f"pulls?head=acme:{TASK_BRANCH}")
        assert (pull["state"], pull["draft"], fact_in(pull["body"])) == ("open", False, FACT)
        assert pull["base"]["ref"] == "topic"
