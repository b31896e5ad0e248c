"""The agents' real programs in the whole service: fresh, repaired, refused, hanging, cut off, killed, in teams."""

import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import set_up
from tests.e2e.programs import PROGRAMS, available, need
from tests.e2e.stage import Ended, Stage, configure, git, result, running
from tests.scripted_model import ScriptedModel
from workflows.model.spend import Usage
from workflows.policy.prices import cost as cost_of

pytestmark = pytest.mark.long

TOKENS = {"codex": (1000, 50), "claude": (570, 50), "kimi": (1000, 50)}
"""Cost of one request as each program counts it: the model reports 1000 tokens, of which 430 cached, and 50."""

MODELS = {"codex": "gpt-6.1-sol", "claude": "claude-opus-5-5", "kimi": "kimi-default"}
"""Default model of each program; kimi's is in its environment."""

FILE = {"write_file": {"path": "made.txt", "content": "made by the model\n"}}
MADE = result(decision="implemented", summary="made it", changes_made=["made.txt: created"])
SCENARIOS: dict[str, list[dict[str, Any]]] = {
    "make": [FILE | {"text": "First the file."}, MADE],
    "invalid": [FILE, {"result": {"decision": "Approved", "findings": ["[[fake:answer]]"]}}],
    "read": [{"read_file": {"path": "made.txt"}}, result(summary="read it [[fake:answer]]")],
    "looked": [result(summary="looked [[fake:answer]]")],
    "cut": [{"fault": {"kind": "truncate"}}],
}


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if not available():
        need(*PROGRAMS)
    service = set_up(tmp_path_factory.mktemp("agents"))
    with ScriptedModel(SCENARIOS) as model:
        configure(service, model)
        stage = Stage(service, model)
        try:
            stage.set_up()
            marks = (mark for item in request.session.items for mark in item.iter_markers("play"))
            stage.begin(dict.fromkeys(mark.kwargs["of"] for mark in marks))
            yield stage
        finally:
            stage.close()
            service("daemon", "stop")


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


@pytest.fixture
def played(request: pytest.FixtureRequest, stage: Stage, program: str) -> Any:
    """Return the outcome of the test's play."""
    return stage.played(request.node.get_closest_marker("play").kwargs["of"], program)


def cost(program: str, requests: int) -> tuple[int, int]:
    fresh, output = TOKENS[program]
    return fresh * requests, output * requests


def asked(stage: Stage, program: str) -> Ended:
    return stage.run(program, "ask", "answer")


@pytest.mark.play(of=asked)
@pytest.mark.ruling("S6", "spec:limits.token_capture")
def test_a_question_is_answered_and_counted(stage: Stage, program: str, played: Ended) -> None:
    assert (played.state, played.job["decision"]) == ("succeeded", "approved")
    assert played.tokens == cost(program, 1)
    assert len(played.requests) == played.job["usage"]["requests"] == 1


@pytest.mark.play(of=asked)
@pytest.mark.ruling("K5")
def test_the_model_a_program_chose_itself_is_what_the_job_says_and_pays(program: str, played: Ended) -> None:
    assert [one["model"] for one in played.requests] == [MODELS[program]]
    assert (played.job["model"], played.job["price_assumed"]) == (MODELS[program], False)
    usage = played.job["usage"]
    assert played.job["cost_usd"] == cost_of(Usage(**usage), MODELS[program], {}).usd


def made(stage: Stage, program: str) -> Ended:
    return stage.run(program, "implement", "make")


@pytest.mark.play(of=made)
@pytest.mark.ruling("I1", "I4")
def test_a_file_written_by_a_tool_call_is_observed_and_committed(stage: Stage, program: str, played: Ended) -> None:
    assert (played.state, played.job["decision"], played.tokens) == ("succeeded", "implemented", cost(program, 2))
    observed = played.job["payload"]["result_observation"]
    assert [claim["grade"] for claim in observed["claims"]] == ["observed"]
    assert observed["unclaimed_files"] == []
    assert git(stage.service.repo, "show", f"{played.job['branch']}:made.txt") == "made by the model\n"
    assert git(stage.service.repo, "diff", "--name-only", "main", played.job["branch"]) == "made.txt\n"


def chosen(stage: Stage, program: str) -> Ended:
    return stage.run(program, "ask", "answer", "--model", "model-of-choice", "--effort", "xhigh")


@pytest.mark.play(of=chosen)
@pytest.mark.ruling("spec:delegation.model", "spec:delegation.effort")
def test_the_model_is_the_jobs_and_only_runtime_a_takes_an_effort(program: str, played: Ended) -> None:
    (asked,) = played.requests
    assert asked["model"] == "model-of-choice"
    assert (asked["effort"] == "xhigh") is (program == "codex")
    assert (played.job["model"], played.job["price_assumed"]) == ("model-of-choice", True)


def repaired(stage: Stage, program: str) -> Ended:
    return stage.run(program, "implement", "invalid")


@pytest.mark.play(of=repaired)
@pytest.mark.ruling("A5", "S6")
def test_an_invalid_result_is_repaired_in_the_same_session_and_no_token_counts_twice(
    stage: Stage, program: str, played: Ended
) -> None:
    assert (played.state, played.job["decision"]) == ("succeeded", "approved")
    assert [(one["scenario"], one["user_turns"]) for one in played.requests][-2:] == [("invalid", 1), ("answer", 2)]
    # claude's tool refuses it five times, the last of which the program doesn't count
    assert (len(played.requests), played.tokens) == (
        (7, cost(program, 6)) if program == "claude" else (3, cost(program, 3))
    )
    assert played.job["usage"]["requests"] == len(played.requests)
    assert git(stage.service.repo, "show", f"{played.job['branch']}:made.txt") == "made by the model\n"


def refused(stage: Stage, program: str) -> dict[str, Ended]:
    return {fault: stage.run(program, "ask", fault) for fault in ("http-401", "http-500", "cut")}


@pytest.mark.play(of=refused)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("http-401", "401"),
        ("http-500", "500|high demand"),
        ("cut", "dropped|disconnected|terminated|connection"),
    ],
)
def test_a_model_that_refuses_or_breaks_off_fails_the_job_and_says_why(
    program: str, played: dict[str, Ended], fault: str, words: str
) -> None:
    ended = played[fault]
    assert ended.state == ("blocked" if fault == "http-401" else "failed"), ended.job["reason"]
    assert len(ended.requests) <= 2, "the programs are told not to try again"
    begun = (570, 1) if (program, fault) == ("claude", "cut") else (0, 0)  # the head of a stream reports the input
    assert ended.tokens in ((0, 0), begun)
    assert re.search(words, ended.job["reason"], re.IGNORECASE), ended.job["reason"]


def put_off(stage: Stage, program: str) -> Ended:
    """Run a job that writes a file and then meets a limit; the next try finds the file and no limit."""
    limit = {"kind": "status", "status": 429, "first": 1, "message": "rate limit reached, try again in 6s"}
    stage.model.scenarios[f"limit-{program}"] = [FILE, MADE | {"fault": limit}]
    return stage.run(program, "implement", f"limit-{program}")


@pytest.mark.play(of=put_off)
@pytest.mark.ruling("B3")
def test_a_limit_is_waited_for_and_said_and_everything_used_counts(stage: Stage, program: str, played: Ended) -> None:
    """The output of `job show` changes within seconds, but the events are kept."""
    events = stage.service.json("job", "events", played.job["job_id"])
    (waited,) = [event for event in events if event["kind"] == "runtime_waits"]
    assert re.search(rf"waits for {PROGRAMS[program]} until \S+.*429", waited["message"]), waited
    assert (played.state, played.job["decision"]) == ("succeeded", "implemented")
    assert [one["fault"] for one in played.requests if one["step"]] == ["status", None]
    assert played.tokens == cost(program, len(played.requests) - 1)
    assert git(stage.service.repo, "show", f"{played.job['branch']}:made.txt") == "made by the model\n"


def meddled(stage: Stage, program: str) -> tuple[Ended, Ended]:
    """Run jobs that write beside the worktree and in the home, by a tool and by a command, and then in the worktree."""
    beside: list[dict[str, Any]] = [
        {"write_file": {"path": f"{stage.service.tmp}/{program}-tool.txt", "content": "x"}},
        {"write_file": {"path": f"../{program}-beside.txt", "content": "x"}},
        {"run": f"touch {stage.service.tmp}/{program}-command.txt"},
    ]
    stage.model.scenarios[f"meddle-{program}"] = [*beside, FILE, MADE]
    scenario = f"meddle-{program}"
    return stage.run(program, "implement", scenario), stage.run(f"{program}-reader", "ask", scenario)


@pytest.mark.play(of=meddled)
@pytest.mark.ruling("spec:ephemeral.read_only")
def test_no_program_writes_where_its_policy_does_not_let_it(
    stage: Stage, program: str, played: tuple[Ended, Ended]
) -> None:
    writer, reader = played
    assert [len(model.requests) for model in played] == [5, 5]
    assert git(stage.service.repo, "diff", "--name-only", "main", writer.job["branch"]) == "made.txt\n"
    assert not reader.job["branch"], reader.job
    there = [name for _, _, names in os.walk(stage.service.tmp) for name in names]  # folders may be deleted meanwhile
    assert [name for name in there if re.fullmatch(rf"{program}-.*\.txt", name)] == []


def leg(name: str, program: str, action: str, scenario: str, **more: Any) -> dict[str, Any]:
    worker = {"runtime": PROGRAMS[program], "autonomy_policy": "workspace-write"}
    prompt = f"Do {name}. [[fake:{scenario}]]"
    return {"id": name, "ephemeral": worker, "action": action, "prompt": prompt} | more


def hung(stage: Stage, program: str) -> tuple[dict[str, Any], Ended]:
    only = leg("stuck", program, "implement", "hang", timeout="1m", failure_policy="continue")
    stage.model.scenarios[f"hang-{program}"] = [result(delegations=[only], summary="hangs")]
    job = stage.start(program, "ask", f"hang-{program}")
    stage.service.wait_for(lambda: stage.requests(job) != [])
    stage.model.scenarios[f"hang-{program}"] = [result()]
    return stage.tree(job), stage.ended(f"{job}.1")


@pytest.mark.play(of=hung)
def test_a_model_that_never_answers_is_left_at_the_timeout_and_the_coordinator_goes_on(
    stage: Stage, played: tuple[dict[str, Any], Ended]
) -> None:
    tree, ended = played
    assert ended.state == "failed"
    assert "timeout of 1m" in ended.job["reason"]
    assert [one["fault"] for one in ended.requests] == ["hang"]
    assert stage.processes(ended.job["job_id"]) == {}
    assert [job["state"] for job in tree["jobs"]] == ["succeeded", "failed", "succeeded"]
    assert tree["task"]["state"] == "done"


def sleeping(how: str, program: str) -> str:
    return f"python3 -c 'import time; time.sleep(300)  # {how} {program}'"


def interrupted(stage: Stage, program: str, how: str) -> Ended:
    """Stop a job during a tool call of its program; the job that sums up finds a model that answers."""
    scenario = f"{how}-{program}"
    stage.model.scenarios[scenario] = [FILE, {"run": sleeping(how, program)}, result()]
    job = stage.start(f"{program}-free", "implement", scenario)
    stage.service.wait_for(lambda: running(f"# {how} {program}") != [])
    stage.model.scenarios[scenario] = [result()]
    if how == "kill":
        stage.service("job", "kill", job, "--now")
    else:
        leader = stage.leader(job)
        assert leader is not None
        os.killpg(leader, signal.SIGINT)
    return stage.end(job)


def killed(stage: Stage, program: str) -> Ended:
    return interrupted(stage, program, "kill")


def sent_sigint(stage: Stage, program: str) -> Ended:
    return interrupted(stage, program, "interrupt")


@pytest.mark.play(of=killed)
@pytest.mark.ruling("G2")
def test_kill_now_in_the_middle_of_a_tool_call_leaves_nothing_running(
    stage: Stage, program: str, played: Ended
) -> None:
    assert played.state == "cancelled"
    assert stage.processes(played.job["job_id"]) == {}
    assert running(f"# kill {program}") == []


@pytest.mark.play(of=sent_sigint)
def test_an_interrupted_program_is_a_failure_and_leaves_nothing_running(
    stage: Stage, program: str, played: Ended
) -> None:
    assert played.state == "failed"
    assert stage.processes(played.job["job_id"]) == {}
    assert running(f"# interrupt {program}") == []


def team(stage: Stage, program: str) -> tuple[str, dict[str, Any]]:
    if not PROGRAMS.keys() <= available().keys():
        return "", {}
    maker, reader = (other for other in PROGRAMS if other != program)
    legs = [
        leg("make", maker, "implement", "make", model="model-of-maker"),
        leg("read", reader, "review", "read", deps=["make"], phase="review"),
    ]
    stage.model.scenarios[f"lead-{program}"] = [result(summary="delegates", delegations=legs)]
    job = stage.start(program, "ask", f"lead-{program}")
    return job, stage.tree(job)


@pytest.mark.play(of=team)
@pytest.mark.ruling("D1", "E6")
def test_one_program_leads_the_others_and_sums_up(
    stage: Stage, program: str, played: tuple[str, dict[str, Any]]
) -> None:
    need(*PROGRAMS)
    maker, reader = (other for other in PROGRAMS if other != program)
    job, tree = played
    assert tree["task"]["state"] == "done", tree["task"]
    assert [(row["runtime"], row["state"]) for row in tree["jobs"]] == [
        (PROGRAMS[name], "succeeded") for name in (program, maker, reader, program)
    ]
    spent = [(row["usage"]["input_tokens"], row["usage"]["output_tokens"]) for row in tree["jobs"]]
    assert spent == [cost(program, 1), cost(maker, 2), cost(reader, 2), cost(program, 1)]
    assert {one["model"] for one in stage.requests(f"{job}.1")} == {"model-of-maker"}
    assert "made by the model" in str(stage.requests(f"{job}.2")[-1]["body"])
    last = stage.requests(f"{job}.3")[-1]
    assert (last["scenario"], "made it" in str(last["body"]), "read it" in str(last["body"])) == ("answer", True, True)


def kept(stage: Stage, program: str) -> tuple[str, dict[str, Any]]:
    """Run a coordinator whose agent keeps its session, one leg, and the continuation."""
    legs = [{"id": "look", "agent": f"{program}-reader-dev", "action": "ask", "prompt": "Look. [[fake:looked]]"}]
    stage.model.scenarios[f"kept-{program}"] = [result(summary="delegates", delegations=legs)]
    job = stage.start(f"{program}-kept", "ask", f"kept-{program}")
    return job, stage.tree(job)


@pytest.mark.play(of=kept)
@pytest.mark.ruling("K3", "spec:limits.token_capture")
def test_a_coordinator_goes_on_in_the_session_it_began_and_counts_only_what_each_job_used(
    stage: Stage, program: str, played: tuple[str, dict[str, Any]]
) -> None:
    job, tree = played
    assert tree["task"]["state"] == "done", tree["task"]
    assert [row["state"] for row in tree["jobs"]] == ["succeeded"] * 3
    spent = [(row["usage"]["input_tokens"], row["usage"]["output_tokens"]) for row in tree["jobs"]]
    assert spent == [cost(program, 1)] * 3
    begun, gone_on = stage.requests(job)  # both in the one folder
    assert (begun["user_turns"], gone_on["user_turns"]) == (1, 2), "the session's first turn is there"
    assert "Do it." in str(gone_on["body"])
    events = stage.service.json("job", "events", job)
    assert [event for event in events if event["kind"] == "session_not_resumed"] == []
