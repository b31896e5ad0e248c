"""People using the service: real processes, the command line from start to end."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.conftest import Installed
from tests.e2e.script import Script, leg, played, states, until_paused

ASK = {"human_questions": [{"id": "store", "prompt": "Redis or memory?", "choices": ["redis", "memory"]}]}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("people"))


def told(service: Installed, job: str) -> list[str]:
    path = service.home / "notifications.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [entry["kind"] for entry in map(json.loads, lines) if entry["root_job_id"] == job]


@pytest.mark.ruling("F1", "F2", "F5", "F6", "spec:states.human_questions")
def test_a_question_pauses_the_tree_until_somebody_answers(script: Script) -> None:
    script.answers(none=ASK | {"delegations": [leg("later", "ask")]})
    job = script.ask()
    until_paused(script, job)
    listed = script.service.json("attention")["waiting"]
    mine = next(each for each in listed if each["root_job_id"] == job)
    assert mine["commands"][0] == f'service resume {job} answer "store: <text>"'
    assert "Redis or memory?" in script.service("attention").stdout
    refused = script.service("resume", job, "retry", code=3).stderr
    assert "answer" in refused
    assert "extend" in refused
    assert "waits for answer or extend" in script.service("resume", job, code=2).stderr
    outside = script.service("resume", job, "answer", "store: redis: the big one", code=3).stderr
    assert "`redis: the big one` is not one of the choices of `store`" in outside
    assert f'try: service resume {job} answer "store: <text>"\n' in outside
    assert f"     service resume {job} answer 'store: redis: the big one' --other\n" in outside
    said = script.service("resume", job, "answer", "store: redis: the big one", "--other").stdout.splitlines()
    assert said[:2] == ["answer is accepted", "  store: redis: the big one"]
    assert said[2].startswith(f"round 1 of {job} is over: answered by ")
    assert said[3:] == ["the tree goes on"]
    tree = script.until_over(job)
    assert tree["task"]["state"] == "done"
    assert states(tree) == {"none": "succeeded", "answered": "succeeded"}
    prompt = script.prompt(f"{job}.1")
    assert "redis: the big one" in prompt
    assert '"later"' in prompt
    late = script.service("resume", job, "answer", "store: memory", code=3).stderr
    assert f"the tree {job} has ended (done); round 1 of {job} is over: answered by " in late
    assert f"round 1 of {job} is over: answered by " in script.service("resume", job, code=4).stderr
    script.service.wait_for(lambda: told(script.service, job) == ["round_opened"])
    assert not [each for each in script.service.json("attention")["waiting"] if each["root_job_id"] == job]


@pytest.mark.ruling("F3", "D7", "spec:states.escalate_human")
def test_a_failure_pauses_and_a_retry_with_instructions_goes_on(script: Script) -> None:
    script.answers(
        none={"delegations": [leg("work", "ask", failure_policy="escalate_human")]}, work__1={"decision": "failed"}
    )
    job = script.ask()
    until_paused(script, job)
    assert "answer" not in script.service("attention").stdout.split(job)[1].split("service resume")[1]
    script.service("resume", f"{job}.1", "retry", "use the other compiler")
    tree = script.until_over(job)
    assert states(tree) == {"none": "succeeded", "work": "succeeded", "normal": "succeeded"}
    assert "use the other compiler" in script.prompt(f"{job}.1")


@pytest.mark.ruling("F4")
def test_of_two_resumes_at_once_exactly_one_wins_and_both_are_told_the_truth(script: Script) -> None:
    script.answers(none=ASK)
    job = script.ask()
    until_paused(script, job)
    words = [("resume", job, "answer", f"store: {n}", "--other", "--json") for n in range(4)]

    def send(arguments: tuple[str, ...]) -> int:
        return script.service.run(*arguments).returncode

    with ThreadPoolExecutor(4) as four:
        codes = sorted(four.map(send, words))
    assert codes == [0, 3, 3, 3]
    script.until_over(job)
    kinds = [event["kind"] for event in script.service.json("job", "events", job)]
    assert kinds.count("resume_accepted") == 1


@pytest.mark.long
@pytest.mark.ruling("F6")
def test_a_resume_sent_while_no_worker_runs_is_applied_when_one_comes(script: Script) -> None:
    script.answers(none=ASK)
    job = script.ask()
    until_paused(script, job)
    worker = script.service.pid("worker")
    os.kill(worker, signal.SIGSTOP)
    try:
        missed = script.service("resume", job, "answer", "stroe: memory", code=3).stderr
        assert "did you mean `store`?" in missed, "what nobody could ask back about later is asked back now"
        kept = script.service.json("resume", job, "answer", "store: memory")
    finally:
        os.kill(worker, signal.SIGKILL)
    assert kept["applied"] is False
    assert kept["message"].endswith("answer store: memory")
    tree = script.until_over(job)
    assert tree["task"]["state"] == "done"
    assert "memory" in script.prompt(f"{job}.1")
    kinds = [event["kind"] for event in script.service.json("job", "events", job)]
    assert kinds.count("resume_accepted") == 1


@pytest.mark.long
@pytest.mark.ruling("F9", "F8")
def test_a_pause_survives_everything_and_a_kill_finalizes_it_at_once(script: Script) -> None:
    script.answers(none=ASK)
    job = script.ask()
    until_paused(script, job)
    for member in ("worker", "server"):
        script.service.kill(member)
    script.service("resume", job, "extend", "2h")  # applied at once, or kept until the worker is back, never refused
    script.service("job", "kill", job)
    tree = script.until_over(job)
    assert tree["task"]["state"] == "cancelled"
    script.service.wait_for(lambda: "round_opened" in told(script.service, job))
    assert told(script.service, job).count("round_opened") == 1
