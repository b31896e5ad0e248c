"""A notification is complete: questions, failures, time, cost and the command to type."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from activities.notify.channels import CommandChannel, LogFile
from activities.notify.message import complete
from activities.settings.home import Home
from activities.store import job_rows
from activities.store.database import open_store
from activities.store.outbox import Notification
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.evil import EVIL, forged, raw
from tests.rows import CUT
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import FailingRecord, QuestionRecord, Records, RoundRecord
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState, WaitsFor

pytestmark = pytest.mark.ruling("F8.told")
TOLD = Notification(f"{ROOT}-e3", ROOT, ROOT, "round_opened", "round 1 asks color", 12.0)
LEG = f"{ROOT}.1"


@pytest.fixture
def store(home: Home) -> Engine:
    made = open_store(home)
    spent: dict[str, Any] = {"usage": Usage(input_tokens=1200, output_tokens=34), "cost_usd": 0.25}
    failed = seeds.job(LEG, state=JobState.FAILED, reason="no compiler", ended_at=3.0)
    job_rows.write(made, Records(task=seeds.task(next="service resume x"), jobs=(seeds.job(**spent), failed)))
    return made


def asked(store: Engine, **fields: Any) -> RoundRecord:
    question = QuestionRecord(id="color", prompt="which?", choices=("red", "blue"), job_id=ROOT)
    made = seeds.round_(**{"questions": (question,)} | fields)
    job_rows.write(store, Records(rounds=(made,)))
    return made


def test_a_question_is_told_with_its_choices_the_time_the_cost_and_the_line(store: Engine) -> None:
    asked(store)
    message = complete(store, TOLD)
    assert message.text.splitlines() == [
        "round 1 asks color",
        "acme/shop: look",
        "  color: which? [red | blue]",
        "until 1970-01-01 00:00:02 UTC",
        "jobs 1 of 64, time 11s of 2h, tokens 1,234, cost $0.25",
        f"service resume {ROOT} answer",
    ]
    assert message.questions[0]["choices"] == ["red", "blue"]
    assert (message.jobs, message.tokens, message.cost_usd, message.expires_at) == (
        1,
        1234,
        0.25,
        2.0,
    )


@pytest.mark.ruling("M6")
def test_the_page_where_it_can_be_done_stands_beside_the_line(store: Engine) -> None:
    asked(store)
    message = complete(store, TOLD, "http://127.0.0.1:8791")
    assert message.page == f"http://127.0.0.1:8791/ui/trees/{ROOT}"
    assert message.text.splitlines()[-2:] == [
        f"service resume {ROOT} answer",
        f"or on the page {message.page}",
    ]


@pytest.mark.ruling("M6")
def test_where_there_is_nothing_to_do_no_page_is_named(store: Engine) -> None:
    asked(store, end=RoundEnd.ANSWERED, closed_at=5.0, closed="answered by ann, in the terminal", commands=(), verbs=())
    message = complete(store, TOLD, "http://127.0.0.1:8791")
    assert (message.page, "page" in message.text) == ("", False)


def test_failures_are_told_with_their_reasons(store: Engine) -> None:
    fail = FailingRecord(leg="leg", job_id=LEG, attempt=1, state=JobState.FAILED, reason="no compiler")
    asked(store, kind=RoundKind.FAILURE, questions=(), failing=(fail,))
    message = complete(store, TOLD)
    assert f"  leg ({LEG}) failed: no compiler" in message.text
    assert message.failing[0]["reason"] == "no compiler"


def test_what_is_over_by_the_time_it_is_told_says_so(store: Engine) -> None:
    asked(store, end=RoundEnd.ANSWERED, closed_at=5.0, closed="answered by ann, in the terminal", commands=(), verbs=())
    message = complete(store, TOLD)
    assert "  this is over: answered by ann, in the terminal" in message.text
    assert (message.commands, message.expires_at) == ((), None)
    assert "until" not in message.text


def test_a_blocked_task_names_what_failed_and_the_retry(store: Engine) -> None:
    again = f"service job retry {LEG}"
    task = seeds.task(state=TaskState.BLOCKED, next=again, waits_for=WaitsFor.RETRY, revision=2)
    job_rows.write(store, Records(task=task))
    message = complete(store, TOLD.__class__(**{**TOLD.__dict__, "kind": "task_blocked", "job_id": LEG}))
    assert f"  leg ({LEG}) failed: no compiler" in message.text
    assert message.text.splitlines()[-1] == again
    assert [each["leg"] for each in message.failing] == ["leg"]


@pytest.mark.parametrize("waits_for", WaitsFor)
def test_what_comes_next_is_told_as_a_command_where_somebody_is_waited_for(store: Engine, waits_for: WaitsFor) -> None:
    """The command's text does not matter."""
    last = "codex login; then: service job retry x"
    job_rows.write(store, Records(task=seeds.task(next=last, waits_for=waits_for, revision=2)))
    message = complete(store, replace(TOLD, kind="task_blocked"))
    nobody = waits_for in {WaitsFor.NOTHING, WaitsFor.RUNS}
    assert (message.commands, message.text.endswith(last)) == (() if nobody else (last,), not nobody)


def test_an_unknown_tree_keeps_the_plain_message(home: Home) -> None:
    assert complete(open_store(home), TOLD).text == TOLD.message


def test_every_channel_gets_all_of_it(store: Engine, tmp_path: Path) -> None:
    long = QuestionRecord(id="long", prompt="why? " * 400, choices=("x" * 2000,) * 20, job_id=ROOT)
    asked(store, questions=(long,) * 20)
    message = complete(store, TOLD)
    out = tmp_path / "out"
    expression = "os.environ['SERVICE_NOTIFICATION_COMMAND'] + sys.stdin.read()"
    script = f"import os, sys; open({str(out)!r}, 'w').write({expression})"
    CommandChannel((sys.executable, "-c", script), {"PATH": os.environ["PATH"]}).deliver(message)
    assert out.read_text() == message.commands[0] + message.text
    log = LogFile(tmp_path / "log.jsonl")
    for _ in range(2):
        log.deliver(message)
    [line] = (tmp_path / "log.jsonl").read_text().splitlines()
    assert len(json.loads(line)["questions"]) == 20


@pytest.mark.ruling("N6")
def test_no_line_is_told_that_others_wrote(store: Engine) -> None:
    question = QuestionRecord(id="color", prompt=EVIL, choices=(EVIL,), job_id=ROOT)
    asked(store, questions=(question,), commands=(f"service resume x {EVIL}",))
    job_rows.write(store, Records(task=seeds.task(title=EVIL, revision=9)))
    message = complete(store, replace(TOLD, message=f"round 1 asks {EVIL}"))
    assert "FORGED" in message.text
    assert (raw(message.text), forged(message.text), len(message.text.splitlines())) == ([], [], 6)


@pytest.mark.ruling("G1.cut")
def test_a_tree_that_was_cut_short_is_told_with_the_way_on(store: Engine) -> None:
    job_rows.write(store, Records(task=seeds.task(**CUT, revision=2)))
    message = complete(store, replace(TOLD, kind="tree_cut_short", message=CUT["reason"]))
    assert message.text.splitlines()[0] == CUT["reason"]
    assert message.commands == (CUT["next"],)
