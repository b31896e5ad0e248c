import pytest

from tests.tree.simulator import ROOT, World, delegation, resume_requested, tree_input
from workflows.contract.models import HumanQuestion
from workflows.model.refusals import ResumeFault
from workflows.model.rounds import RoundEnd
from workflows.model.settings import Bounds, TreeSettings
from workflows.model.states import Continuation, TaskState
from workflows.tree import pause_rounds
from workflows.tree.details import details
from workflows.tree.events import TimerFired
from workflows.tree.pause_rounds import open_rounds
from workflows.tree.resume import refuse_resume
from workflows.tree.state import TreeMemory

ASK = (HumanQuestion(id="store", prompt="Redis *or* memory?", choices=("redis", "memory")),)


def asking(bounds: Bounds | None = None, ttl: float = 1000.0) -> World:
    settings = TreeSettings(bounds=bounds or Bounds(), escalation_ttl_seconds=ttl, escalation_handle="@ann")
    tree = World(tree_input(settings=settings)).begin()
    tree.coordinator("approved", human_questions=ASK)
    return tree


def failing() -> World:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", failure_policy="escalate_human"))
    tree.leg("a", "failed", reason="no compiler")
    return tree


def why(tree: World, verb: str, text: str = "", job_id: str = ROOT, **fields: object) -> tuple[str, str]:
    """Return the pure verdict, after checking that the tree's is equal and that neither changes anything."""
    base = {"now": tree.now, "actor": "bob", "channel": "comment", "job_id": job_id, "verb": verb, "text": text}
    request = resume_requested(base | fields)
    before = tree.state.model_copy(deep=True)
    refusal = refuse_resume(tree.state, request)
    assert tree.state == before
    assert refusal is not None
    tree.feed(request)
    assert (tree.said[-1].kind, tree.said[-1].message) == ("resume_refused", refusal.message)
    assert {row.round_id: row.end for row in open_rounds(tree.state)} == {
        row.round_id: row.end for row in open_rounds(before)
    }
    return refusal.kind, refusal.message


@pytest.mark.ruling("F4", "spec:states.wrong_verb")
@pytest.mark.parametrize("verb", ["retry", "continue", "abort", "nonsense"])
def test_an_ask_round_takes_answers_only(verb: str) -> None:
    kind, message = why(asking(), verb)
    assert kind is ResumeFault.WRONG_VERB
    assert "ask round: it takes `answer`, `extend`" in message


@pytest.mark.ruling("F4", "spec:states.wrong_verb")
def test_a_failure_round_takes_no_answer() -> None:
    kind, message = why(failing(), "answer", "yes")
    assert kind is ResumeFault.WRONG_VERB
    assert "failure round: it takes `retry`, `continue`, `abort`, `extend`" in message


@pytest.mark.ruling("F4", "B1")
def test_what_is_meant_has_to_be_there() -> None:
    tree = asking()
    assert why(tree, "answer", "x", job_id="job-other")[0] is ResumeFault.UNKNOWN_JOB
    assert tree.said[-1].job_id == ROOT
    assert why(tree, "answer", "x", round=2)[0] is ResumeFault.UNKNOWN_ROUND
    assert why(tree, "answer", "x", round=0)[0] is ResumeFault.UNKNOWN_ROUND
    assert why(tree, "answer", "x", digest="0" * 64)[0] is ResumeFault.STALE_ROUND
    assert why(tree, "answer", "x", digest=tree.open()[0].digest[:7])[0] is ResumeFault.STALE_ROUND
    assert why(tree, "answer", "  ")[0] is ResumeFault.EMPTY_ANSWER
    assert why(tree, "extend", "soon")[0] is ResumeFault.BAD_DURATION
    running = World(tree_input()).begin()
    assert why(running, "answer", "x")[0] is ResumeFault.NO_OPEN_ROUND


@pytest.mark.ruling("F4")
def test_the_first_accepted_wins_and_a_later_one_is_told_who_how_and_when() -> None:
    tree = asking()
    digest = tree.open()[0].digest
    tree.resume("answer", "memory", request_id="comment-1")
    accepted = next(each for each in tree.events if each.kind == "resume_accepted")
    payload = {"actor": "ann", "channel": "cli", "request": "comment-1", "verb": "answer", "round": 1, "digest": digest}
    assert accepted.data == payload | {"recorded": ["store: memory"], "unanswered": [], "unmatched": []}
    kind, message = why(tree, "answer", "redis")
    assert kind is ResumeFault.ROUND_OVER
    assert message == f"round 1 of {ROOT} is over: answered by ann, in the terminal at 1970-01-01 00:16:42 UTC"
    tree.coordinator("implemented")
    kind, message = why(tree, "answer", "redis")
    assert kind is ResumeFault.TREE_OVER
    assert "task-1 is done" in message
    assert "answered by ann" in message


@pytest.mark.ruling("F4")
def test_the_same_request_acts_once() -> None:
    tree = asking()
    tree.resume("extend", "1h", request_id="comment-7")
    until = tree.open()[0].expires_at
    assert tree.resume("extend", "1h", request_id="comment-7") == []
    assert tree.open()[0].expires_at == until
    tree.resume("extend", "1h", request_id="comment-8")
    assert tree.open()[0].expires_at == until + 3600


@pytest.mark.ruling("F4")
def test_the_same_request_ends_no_second_round() -> None:
    tree = asking()
    tree.resume("answer", "memory", request_id="comment-7")
    tree.coordinator("approved", human_questions=ASK)
    assert tree.resume("answer", "memory", request_id="comment-7") == []
    assert [each.number for each in tree.open()] == [2]


@pytest.mark.ruling("F5")
def test_what_matches_no_question_is_guidance_to_the_coordinator() -> None:
    tree = asking()
    tree.resume("answer", "Keep it small.\nstore: memory")
    assert tree.last.brief is not None
    assert tree.last.brief.guidance == "Keep it small."


@pytest.mark.ruling("B1")
def test_any_job_id_of_the_tree_reaches_the_one_that_waits() -> None:
    for job_id in (ROOT, f"{ROOT}.1", f"{ROOT}.2"):
        tree = World(tree_input()).begin()
        tree.coordinator("approved", delegation("lead", "lead"))
        tree.leg("lead", "approved", delegation("x", failure_policy="escalate_human"))
        tree.leg("x", "failed")
        tree.resume("retry", job_id=job_id)
        assert tree.said[-1].kind == "resume_accepted"
        assert tree.last.job_id == f"{ROOT}.2"


@pytest.mark.ruling("F4", "B1")
def test_an_answer_meant_for_a_round_that_is_over_never_reaches_another() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", human_questions=ASK)
    tree.resume("answer", "memory")
    tree.coordinator("approved", delegation("lead", "lead"))
    tree.leg("lead", "approved", delegation("x"), human_questions=ASK)
    kind, message = why(tree, "answer", "late")
    assert kind is ResumeFault.ROUND_OVER
    assert f"service resume {ROOT}.2 answer" in message


@pytest.mark.ruling("F8", "K4", "spec:states.escalation_ttl", "spec:limits.escalation_ttl")
def test_half_and_ninety_percent_remind_and_the_end_finalizes() -> None:
    tree = asking(ttl=1000)
    opened = tree.now
    for kind, at in (("round_reminder", 500), ("round_reminder", 900), ("round_expired", 1000)):
        tree.fire()
        assert tree.now == opened + at
        assert kind in [each.kind for each in tree.events if each.at == tree.now]
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.state.finalize is not None
    assert tree.state.finalize.kind == "escalation_expired"
    assert tree.state.finalize.reason == f"nobody answered round 1 of {ROOT} within 16m40s"
    assert tree.rounds[f"{ROOT}-r1"].end is RoundEnd.EXPIRED
    tree.coordinator("approved")
    assert tree.task_state() is TaskState.DONE


@pytest.mark.ruling("F8")
def test_a_worker_that_was_away_past_the_end_ends_the_round_with_the_first_timer() -> None:
    tree = asking(ttl=1000)
    [key] = tree.timers
    tree.timers.clear()
    tree.feed(TimerFired(now=tree.now + 5000, key=key))
    assert tree.rounds[f"{ROOT}-r1"].end is RoundEnd.EXPIRED


@pytest.mark.ruling("F4", "F8")
def test_extend_moves_the_end_and_reminds_again() -> None:
    tree = asking(ttl=1000)
    opened = tree.now
    tree.fire()
    tree.resume("extend", " 1h ")
    assert tree.open()[0].expires_at == opened + 1000 + 3600
    assert len(tree.timers) == 1
    tree.fire()
    tree.fire()
    assert tree.kinds().count("round_reminder") == 3
    tree.fire()
    assert (tree.now, tree.open()) == (opened + 4600, [])


@pytest.mark.ruling("F8", "C4", "spec:states.escalation_ttl")
def test_paused_time_is_nobodys_and_a_paused_tree_is_never_a_budget_failure() -> None:
    tree = asking(Bounds(max_delegation_wall_clock_seconds=100), ttl=90_000)
    tree.resume("answer", "memory", now=tree.now + 80_000)
    assert tree.state.elapsed_seconds(tree.now) == pytest.approx(1)
    tree.coordinator("approved", delegation("a"))
    assert tree.last.delegation_id == "a"
    assert not [each for each in tree.kinds() if each.startswith("delegation_")]


@pytest.mark.ruling("F8", "C4")
def test_two_rounds_at_once_are_not_counted_twice() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("p", "lead"), delegation("q", "lead"))
    began = tree.now
    tree.leg("p", "approved", delegation("x"), human_questions=ASK, after=10)
    tree.leg("q", "approved", delegation("x"), human_questions=ASK, after=100)
    tree.resume("answer", "a", job_id=f"{ROOT}.1", now=tree.now + 100)
    tree.resume("answer", "b", job_id=f"{ROOT}.2", now=tree.now + 100)
    assert tree.state.paused_seconds == 300
    assert tree.state.elapsed_seconds(tree.now) == began + 10 - 1000


@pytest.mark.ruling("F1", "B3", "B4")
def test_everything_a_surface_needs_is_in_the_row_the_event_and_the_details() -> None:
    tree = asking()
    [shown] = open_rounds(tree.state)
    [row] = tree.open()
    assert shown == row.model_copy(update={"revision": shown.revision})
    assert row.questions[0].choices == ("redis", "memory")
    assert row.verbs == ("answer", "extend")
    opened = next(each for each in tree.events if each.kind == "round_opened")
    assert (opened.data["handle"], opened.data["asks"]) == ("@ann", ["store"])
    assert opened.message == f"round 1 of {ROOT} asks store; waits until 1970-01-01 00:33:21 UTC"
    messages = [each.message for each in failing().events if each.kind == "round_opened"]
    assert messages[0].startswith(f"round 1 of {ROOT}: a failed; a person decides; waits until ")
    text = details(tree.state)
    assert "awaiting_human" in text
    assert "  store: Redis or memory? (redis / memory)" in text
    assert f'`service resume {ROOT} answer "store: <text>"`' in text
    assert "until 1970-01-01 00:33:21 UTC" in text
    assert "time 1s of 2h" in text, "the pause is not counted"
    assert "  a failed: no compiler" in details(failing().state)


@pytest.mark.ruling("F1", "engine:restores")
def test_a_paused_tree_is_restored_as_it_was() -> None:
    tree = asking()
    tree.state = TreeMemory.model_validate_json(tree.state.model_dump_json())
    assert not tree.state.quiescent
    tree.resume("answer", "memory\ud800\x00")
    assert tree.last.brief is not None
    assert tree.last.brief.answers[0].text == "memory\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
    assert tree.rounds[f"{ROOT}-r1"].questions[0].answer == tree.last.brief.answers[0].text


@pytest.mark.ruling("F8", "engine:restores")
def test_a_workflow_that_goes_on_from_a_paused_state_starts_the_same_timers() -> None:
    tree = asking(ttl=1000)
    tree.resume("extend", "1000s", now=tree.now + 100)
    [timer] = pause_rounds.timers(tree.state, tree.now + 50)
    assert tree.timers == {timer.key: pytest.approx(tree.now + 50 + timer.seconds)}
    tree.resume("answer", "memory")
    assert pause_rounds.timers(tree.state, tree.now) == ()


@pytest.mark.ruling("B3", "F8", "D3")
def test_everything_that_waits_says_which_command_ends_the_pause() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a"), delegation("lead", "lead"), delegation("r", retry=1), delegation("z"))
    tree.leg("r", "failed")
    tree.leg("a", human_questions=ASK)
    tree.leg("lead", "approved", delegation("x"))
    command = tree.state.task.next
    assert tree.jobs[f"{ROOT}.2"].next == command, "its delegations are held"
    assert tree.jobs[f"{ROOT}.3"].next == "attempt 2 starts 5 s after it"
    key = next(each for each in tree.timers if each.startswith("retry"))
    del tree.timers[key]
    tree.feed(TimerFired(now=tree.now + 5, key=key))
    assert tree.jobs[f"{ROOT}.3"].next == command
    tree.resume("answer", "memory")
    assert [each.next for each in tree.jobs.values() if each.next] == []
