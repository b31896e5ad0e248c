"""The team of `service init`, played by a model that obeys its prompts literally: README's order ends merged.

Two legs conflict and a check fails on the way; nobody is asked. The model's whole knowledge is `literal.TABLE`.
"""

import json
import sys
from collections.abc import Iterator

import pytest

from bridge.operations.registry import init
from tests.e2e import literal
from tests.e2e.conftest import Installed, set_up
from tests.e2e.limiter import ORDER, SHAPES, Walk, merge, order, register, resolve
from tests.unboxed import NO_BOX

pytestmark = [pytest.mark.ruling("P2", "P3", "P5", "O6")]

BOTH = ("The limit is in limits.py.", "Three calls are allowed.")


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """Set up the team, and return the job with which `service init` tries it."""
    service = set_up(tmp_path_factory.mktemp("literal"))
    settings(service)
    try:
        yield register(service, "codex", "claude")
    finally:
        service("daemon", "stop")


@pytest.fixture(scope="module")
def walk(tried: Walk) -> Walk:
    words, _ = SHAPES["both"]
    return order(tried.service, words)


def settings(service: Installed) -> None:
    """Have the literal model answer in place of codex and claude."""
    lines = []
    for program, runtime in (("codex", "runtime_a"), ("claude", "runtime_b")):
        command = service.tmp / program
        command.write_text(f'#!/bin/sh\nLITERAL={program} exec {sys.executable} -B {literal.__file__} "$@"\n')
        command.chmod(0o755)
        lines += [f"[runtimes.{runtime}]", f"command = {json.dumps([str(command)])}", NO_BOX]
    service.home.joinpath("config.toml").write_text("\n".join(lines) + "\n")
    for variable, program in (("CODEX_HOME", "codex"), ("CLAUDE_CONFIG_DIR", "claude")):
        folder = service.tmp / f"{program}-home"
        folder.mkdir()
        service.extra[variable] = str(folder)
    service.extra.update({"ANTHROPIC_API_KEY": "any", "OPENAI_API_KEY": "any"})


def test_the_daily_order_ends_done_with_a_conflict_and_a_failed_check_on_the_way(walk: Walk) -> None:
    _, jobs = SHAPES["both"]
    assert walk.jobs == jobs
    assert walk.ended == ("done", "")
    agents = {job["agent"] for job in walk.tree["jobs"]}
    assert agents == {init.LEAD, init.BUILDER, init.CHECKER}


@pytest.mark.ruling("P1")
@pytest.mark.parametrize("shape", ["lost leg", "lost leg of one", "lost merge", "workers of its own"])
def test_a_leg_is_issued_again_and_workers_get_their_policy(tried: Walk, shape: str) -> None:
    words, jobs = SHAPES[shape]
    other = order(tried.service, words)
    assert (other.jobs, other.ended) == (jobs, ("done", ""))


def test_its_work_is_merged_by_one_command(walk: Walk) -> None:
    notes = merge(walk)
    assert [text for text in BOTH if text not in notes] == []


def test_what_it_leaves_out_is_resolved_by_the_team(tried: Walk) -> None:
    words, jobs = SHAPES["left out"]
    other = order(tried.service, words)
    assert (other.jobs, other.ended) == (jobs, ("done", ""))
    assert resolve(other).tree["jobs"][0]["agent"] == init.BUILDER
    notes = merge(other)
    assert [text for text in BOTH if text not in notes] == []


def test_every_habit_of_the_table_is_taught_on_the_way(tried: Walk, walk: Walk) -> None:
    prompts = [*tried.prompts(), *walk.prompts()]
    untaught = [habit for habit, words in literal.TABLE.items() if not any(words in prompt for prompt in prompts)]
    assert untaught == []


@pytest.mark.long
@pytest.mark.ruling("P1")
@pytest.mark.parametrize(
    ("habit", "state", "last"),
    [
        ("changes by a leg", "done", ["none"]),
        ("checks later", "blocked", ["notes", "check-limiter-notes"]),
        ("looks for commands", "blocked", ["check-resolve-notes", "replan"]),
        ("may run", "blocked", ["check-resolve-notes", "replan"]),
        ("has it checked", "done", ["resolve-notes", "normal"]),
        ("checks again", "done", ["repair", "normal", "check-all", "normal"]),
    ],
)
def test_without_a_word_of_the_table_it_ends_elsewhere(tried: Walk, habit: str, state: str, last: list[str]) -> None:
    other = order(tried.service, f"{ORDER} {literal.WITHOUT.format(habit)}")
    assert other.tree["task"]["state"] == state, other.jobs
    assert [name for name, *_ in other.jobs][-len(last) :] == last


@pytest.mark.ruling("P1")
def test_a_leg_that_fails_blocks_a_coordinator_that_does_not_ask_to_be_told(tried: Walk) -> None:
    words, _ = SHAPES["lost leg"]
    other = order(tried.service, f"{words} {literal.WITHOUT.format('asks to be told')}")
    assert other.tree["task"]["state"] == "blocked", other.jobs
    assert ("notes", "failed", "failed") in other.jobs
