"""A service with a twentieth of a processor: a wide tree ends all the same, and whatever waits meanwhile says why."""

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import set_up
from tests.e2e.script import Script, leg, states
from tests.starved import starved
from tests.waiting import PATIENCE
from workflows.policy.stalls import STALL_SECONDS

PERCENT, LEGS = 5, 24
TOLD_WITHIN = 2 * STALL_SECONDS
"""Seconds without progress after which people are told the reason: the watch is starved too."""
QUESTION = {"human_questions": [{"id": "color", "prompt": "Which color?"}]}


@pytest.mark.long
@pytest.mark.ruling("B3")
def test_a_wide_tree_ends_on_a_twentieth_of_a_processor_and_all_that_waits_says_why(tmp_path: Path) -> None:
    with starved(PERCENT) as enter:
        script = Script(set_up(tmp_path))
        service = script.service
        service.extra["PLANS"] = str(script.plans)
        with (service.home / "config.toml").open("a") as config:
            config.write("[orchestrate]\nmax_delegation_width = 64\n")
        legs = [leg(f"part-{number}", "ask") for number in range(LEGS)]
        legs += [leg("last", "ask", deps=["part-0"])]
        script.answers(none={"delegations": legs}, part_5=QUESTION)
        begin = [f"{Path(sys.executable).parent}/service", "daemon", "start"]
        try:
            subprocess.run(begin, env=service.environment, check=True, preexec_fn=partial(enter, 0))
            tree = until_over(script, script.ask())
        finally:
            service("daemon", "stop")
    assert set(states(tree).values()) == {"succeeded"}
    assert {"last", "answered"} <= states(tree).keys()


def until_over(script: Script, root: str) -> dict[str, Any]:
    """Answer the question, and return the tree at its end. Check that it goes on, or that some screen says why not."""
    asks, before, since = True, dict[str, str](), time.monotonic()
    while not (tree := script.tree(root))["over"]:
        if states(tree) != before:
            before, since = states(tree), time.monotonic()
        quiet = time.monotonic() - since
        assert quiet < PATIENCE, script.service("job", "tree", root).stdout
        if quiet > TOLD_WITHIN:
            assert unexplained(script, tree) == []
        if asks and tree["task"]["state"] == "awaiting_human":
            script.service("resume", root, "answer", "color: red")
            asks = False
        time.sleep(1)
    assert not asks
    return tree


def unexplained(script: Script, tree: dict[str, Any]) -> list[str]:
    """Return the open jobs for which neither the tree nor `service attention` has a reason."""
    stalled = {stall["what"] for stall in script.service.json("attention")["stalled"]}
    open_jobs = (job for job in tree["jobs"] if job["state"] in ("queued", "running"))
    return [job["job_id"] for job in open_jobs if not job["reason"] and job["job_id"] not in stalled]
