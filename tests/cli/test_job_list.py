"""`service job list`: trees, and with `--jobs` jobs."""

import json
from typing import Any

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.asking.follow_tree import follow
from cli.main import main
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.rows import CUT
from workflows.contract.models import Decision
from workflows.model.states import Continuation, JobState, TaskState

LAST = f"{ROOT}.1"


@pytest.fixture
def answered(home: Home) -> None:
    """Seed a tree that asked a person, was answered and is done."""
    asked: dict[str, Any] = {
        "state": JobState.BLOCKED,
        "decision": Decision.BLOCKED,
        "summary": "Which store?",
        "ended_at": 2.0,
    }
    last: dict[str, Any] = {"delegation_id": None, "continuation": Continuation.ANSWERED, "state": JobState.SUCCEEDED}
    service = Service(home)
    seeds.write(
        service,
        seeds.task(state=TaskState.DONE, title="Choose a store", ended_at=9.0),
        seeds.job(**asked),
        seeds.job(LAST, **last, summary="In memory.", ended_at=9.0),
        seeds.round_(end="answered", closed_at=3.0),
    )
    service.store.dispose()


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["job", "list", *words]) == 0
    return capsys.readouterr().out


def test_an_answered_tree_that_is_done_reads_done(answered: None, capsys: pytest.CaptureFixture[str]) -> None:
    head, row = printed(capsys).splitlines()
    assert head.split("  ")[0].strip() == "TASK"
    assert [cell.strip() for cell in row.split("  ") if cell][:5] == [ROOT, "done", "Choose a store", "-", "2/2"]
    assert row.endswith("In memory.")
    assert "blocked" not in row


@pytest.mark.ruling("C6", "spec:cli.preflight_failed")
def test_the_plain_list_has_a_trailing_column_for_preflight_failures_where_there_are_any(
    answered: None, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "PREFLIGHT_FAILED:" not in printed(capsys)
    assert {line.count("-") > 9 for line in printed(capsys).splitlines()} == {False}
    service = Service(home)
    other = "job-000000000009"
    first, last = f"{other}.1", f"{other}.2"
    ids: dict[str, Any] = {"root_job_id": other, "task_id": "task-000000000009"}
    corrective: dict[str, Any] = {**ids, "delegation_id": None, "continuation": Continuation.CORRECTIVE}
    seeds.write(
        service,
        seeds.task(other, task_id=ids["task_id"]),
        seeds.job(other, **ids, preflight_failed="nobody is not an agent", queued_at=1.0),
        seeds.job(first, **corrective, preflight_failed="runtime_a is not an agent", queued_at=2.0),
        seeds.job(last, **corrective, queued_at=3.0),
    )
    service.store.dispose()
    head, *rows = printed(capsys).splitlines()
    assert head.rstrip().endswith("PREFLIGHT_FAILED:")
    by_id = {row.split()[0]: row.rstrip() for row in rows}
    assert by_id[other].endswith("runtime_a is not an agent")
    assert by_id[ROOT].endswith("In memory.  -")
    [listed] = [each for each in json.loads(printed(capsys, "--json")) if each["job_id"] == other]
    assert listed["tree"]["preflight_failed"] == "runtime_a is not an agent"


def test_json_has_the_keys_of_the_first_job_and_the_tree(answered: None, capsys: pytest.CaptureFixture[str]) -> None:
    [tree] = json.loads(printed(capsys, "--json"))
    jobs = json.loads(printed(capsys, "--json", "--jobs"))
    assert {key: tree[key] for key in tree if key != "tree"} == jobs[-1] | {"job_id": ROOT}
    assert (tree["tree"]["state"], tree["tree"]["last_words"]) == ("done", "In memory.")


def test_the_job_that_asked_reads_answered(answered: None, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {line.split()[0]: line for line in printed(capsys, "--jobs").splitlines()[1:]}
    assert " answered " in shown[ROOT]
    assert " succeeded " in shown[LAST]
    assert main(["job", "show", ROOT]) == 0
    assert "\nstate    answered\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "job_ids"),
    [
        (["--jobs"], {ROOT, LAST}),
        (["--tree", LAST], {ROOT, LAST}),
        (["--roots"], {ROOT}),
        (["--jobs", "--search", "CHOOSE", "--state", "succeeded"], {LAST}),
        (["--search", "choose", "--state", "done"], {ROOT}),
        (["--state", "blocked"], set()),
    ],
)
def test_jobs_are_listed_where_jobs_are_asked_for(
    answered: None, words: list[str], job_ids: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert {each["job_id"] for each in json.loads(printed(capsys, *words, "--json"))} == job_ids


def test_who_waits_is_told_where_the_commands_are(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    service = Service(home)
    seeds.paused(service)
    service.store.dispose()
    assert main(["job", "list"]) == 0
    out, err = capsys.readouterr()
    assert "needs you" in out
    assert "you: which?" in out
    assert err == "to see what waits for you, with the commands: service attention\n"


@pytest.mark.ruling("G1.cut", "K6")
def test_a_tree_that_was_cut_short_is_not_done(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    service = Service(home)
    seeds.write(service, seeds.task(**CUT), seeds.job(state=JobState.SUCCEEDED, summary="Summed up.", ended_at=9.0))
    _, row = printed(capsys).splitlines()
    assert [cell.strip() for cell in row.split("  ") if cell][1] == "cut short"
    assert "cut short: the lead asked for 60 parts" in row
    assert ROOT in printed(capsys, "--state", "cut_short")
    assert ROOT not in printed(capsys, "--state", "done")
    [listed] = json.loads(printed(capsys, "--json"))
    assert (listed["tree"]["state"], listed["tree"]["waits_for"]["next"]) == ("cut_short", CUT["next"])
    for words in (["show", ROOT], ["tree", ROOT]):
        assert main(["job", *words]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "cut short: the lead asked for 60 parts, the limit is 16 (`max_delegation_width`)" in shown
        assert CUT["next"] in shown
    assert follow(service, ROOT, json=False) == 1, "`--wait` of what is not done"
    assert CUT["reason"] in " ".join(capsys.readouterr().out.split())
    service.store.dispose()
