"""Trees as people use them: real processes, the command line from start to end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from activities.store import claim_rows
from tests.e2e.conftest import Installed
from tests.e2e.script import Script, git, leg, played, states, until_paused

ASK = {"human_questions": [{"id": "store", "prompt": "Redis or memory?", "choices": ["redis", "memory"]}]}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("trees"))


@pytest.mark.ruling("D1", "E6", "I1", "spec:run_order.4")
def test_a_dependent_sees_its_dependencies_work_and_the_coordinator_is_told_everything(script: Script) -> None:
    script.answers(
        none={"delegations": [leg("one"), leg("two"), leg("both", "review", deps=["one", "two"])]},
        one={"write": {"one.txt": "1"}, "decision": "implemented", "changes_made": ["one.txt"]},
        two={"write": {"two.txt": "2"}, "decision": "implemented", "changes_made": ["two.txt"]},
        both={"tests_run": ["ls"]},
    )
    job = script.ask()
    tree = script.until_over(job)
    assert tree["task"]["state"] == "done"
    assert states(tree) == dict.fromkeys(("none", "one", "two", "both", "normal"), "succeeded")
    assert [j["job_id"] for j in tree["jobs"]] == [job, *(f"{job}.{n}" for n in range(1, 5))]
    prompt = script.prompt(f"{job}.4")
    assert all(f"### Leg `{name}`: succeeded" in prompt for name in ("one", "two", "both"))
    assert "reach the goal" in prompt
    assert git(script.service.repo, "show", f"service/{job}.1-one:one.txt") == "1"
    assert script.service.json("job", "tree", job) == tree
    shown = script.service("job", "tree", job).stdout
    assert "└─ ✔ .4 lead reads the results: succeeded approved" in shown
    assert "jobs 4 of 64, time " in shown


@pytest.mark.ruling("D4", "B3", "spec:states.block_parent")
def test_a_blocked_tree_says_how_to_go_on_and_goes_on(script: Script) -> None:
    script.answers(
        none={"delegations": [leg("work", "ask"), leg("after", "ask", deps=["work"])]}, work__1={"decision": "failed"}
    )
    job = script.ask()
    tree = script.until_over(job)
    assert tree["task"]["state"] == "blocked"
    assert tree["task"]["next"] == f"service job retry {job}.1"
    assert states(tree) == {"none": "succeeded", "work": "failed", "after": "skipped"}
    shown = script.service("job", "show", job).stdout
    assert "part work failed" in shown
    assert f"next      service job retry {job}.1" in shown
    assert f"  service job retry {job}.1\n" in script.service("attention").stdout.split(f"{job}  blocked")[1]
    refused = script.service("job", "retry", f"{job}.2", code=3).stderr
    assert "only a part that failed" in refused
    assert script.service.json("job", "retry", f"{job}.1") == {"job_id": f"{job}.1", "reopened": True}
    script.service.wait_for(lambda: script.tree(job)["task"]["state"] == "done")
    tree = script.until_over(job)
    assert states(tree) == {"none": "succeeded", "work": "succeeded", "after": "succeeded", "normal": "succeeded"}
    assert job not in script.service("attention").stdout
    again = script.service("job", "retry", f"{job}.1", code=3).stderr
    assert "waits to be run again; it is done" in again


@pytest.mark.ruling("G2", "G1", "spec:states.kill")
def test_a_killed_tree_lets_what_runs_finish_and_sums_up(script: Script) -> None:
    script.answers(none={"delegations": [leg("slow", "ask"), leg("never", "ask", deps=["slow"])]}, slow={"wait": "go"})
    job = script.ask()
    script.service.wait_for(lambda: states(script.tree(job)).get("slow") == "running")
    killed = script.service.json("job", "kill", f"{job}.1")
    assert killed == {"root_job_id": job, "over": False, "unmerged_branches": []}
    script.service("job", "kill", job)
    (script.plans / "go").touch()
    tree = script.until_over(job)
    assert tree["task"]["state"] == "cancelled"
    assert states(tree) == {"none": "succeeded", "slow": "succeeded", "never": "cancelled", "finalize": "succeeded"}
    kinds = [event["kind"] for event in script.service.json("job", "events", job)]
    assert kinds.count("delegation_killed") == 1
    assert "there is nothing to end" in script.service("job", "kill", job, code=3).stderr


@pytest.mark.ruling("G2")
def test_kill_now_also_stops_the_agents(script: Script) -> None:
    script.answers(none={"delegations": [leg("stuck", "ask")]}, stuck={"wait": "never"})
    job = script.ask()
    script.service.wait_for(lambda: states(script.tree(job)).get("stuck") == "running")
    script.service("job", "kill", job, "--now")
    tree = script.until_over(job)
    assert states(tree)["stuck"] == "cancelled"
    assert tree["task"]["state"] == "cancelled"


@pytest.mark.ruling("C6", "spec:events.delegation_preflight_failed", "spec:cli.preflight_failed")
def test_a_preflight_failure_is_shown_wherever_people_look(script: Script) -> None:
    script.answers(none={"delegations": [leg("x", agent="runtime_a"), leg("y", agent="nobody")]})
    job = script.ask()
    tree = script.until_over(job)
    assert states(tree) == {"none": "succeeded", "corrective": "succeeded"}
    listed = script.service("job", "list", "--tree", job, "--preflight-failed").stdout
    assert listed.splitlines()[0].rstrip().endswith("PREFLIGHT_FAILED:")
    assert job in listed
    assert "runtime" in script.prompt(f"{job}.1")
    followed = script.service("job", "events", job, "--follow").stdout
    assert "delegation_preflight_failed" in followed
    assert script.service.json("daemon", "status")["preflight_failures"] >= 1


@pytest.mark.ruling("I1", "spec:states.merge_conflict")
def test_legs_that_conflict_block_the_task_and_are_named_with_the_file(script: Script) -> None:
    script.answers(
        none={"delegations": [leg("left"), leg("right"), leg("see", "review", deps=["left", "right"])]},
        left={"write": {"same.txt": "left"}, "decision": "implemented"},
        right={"write": {"same.txt": "right"}, "decision": "implemented"},
    )
    job = script.ask()
    tree = script.until_over(job)
    assert tree["task"]["state"] == "blocked"
    assert "part right" in tree["task"]["reason"]
    assert "left" in tree["task"]["reason"]
    assert "same.txt" in tree["task"]["reason"]


@pytest.mark.ruling("spec:orchestrate.recipes", "spec:ephemeral.disposed")
def test_a_recipe_needs_no_registered_agent(script: Script) -> None:
    script.answers(implement_goal={"write": {"made.txt": "x"}, "decision": "implemented"})
    words = ("verifier", "make it", "--repo", "acme/shop", "--runtimes", "runtime_a,runtime_b")
    job = script.service.json("orchestrate", *words)["job_id"]
    tree = script.until_over(job)
    assert tree["task"]["state"] == "done"
    assert states(tree) == dict.fromkeys(("none", "implement-goal", "verify", "normal"), "succeeded")
    made, verify = tree["jobs"][1], tree["jobs"][2]
    assert (made["runtime"], verify["runtime"], verify["ephemeral"]) == ("runtime_a", "runtime_b", True)
    worktrees = git(script.service.repo, "worktree", "list", "--porcelain")
    assert worktrees.count("worktree ") == 1


def test_a_recipe_says_what_it_lacks(script: Script) -> None:
    assert (
        "runtime_c is not configured"
        in script.service(
            "orchestrate", "verifier", "x", "--repo", "acme/shop", "--runtimes", "runtime_c", code=2
        ).stderr
    )
    many = ("orchestrate", "review-panel", "x", "--repo", "acme/shop", "--legs", "99")
    assert "1 to 6 legs" in script.service(*many, code=2).stderr


@pytest.mark.ruling("spec:result.in_session_review")
def test_a_review_of_ones_own_is_a_hint_and_says_so(script: Script) -> None:
    words = ("job", "open", "--type", "review", "--pr", "7", "--head-sha", "abcdef1", "--workflow", "inline")
    review = script.service(*words).stdout.strip()
    script.service("job", "note", review, "half way", "--author", "ann")
    closed = script.service.json("job", "close", review, "--verdict", "fine")
    assert closed["review_status"] == {
        "state": "closed", "grade": "reported", "label": "non_authoritative", "verdict": "fine"
    }  # fmt: skip
    assert [n["author_asserted"] for n in closed["notes"]] == ["ann"]
    assert "non_authoritative" in script.service("job", "show", review).stdout
    assert "is closed" in script.service("job", "note", review, "late", code=3).stderr
    assert "was closed before" in script.service("job", "close", review, code=3).stderr
    bad = ("job", "open", "--pr", "7", "--head-sha", "HEAD", "--workflow", "inline")
    assert "is not a commit" in script.service(*bad, code=2).stderr


@pytest.mark.ruling("P6")
def test_agents_that_print_their_prompt_are_no_result_wherever_they_stand_in_a_tree(script: Script) -> None:
    """Tries it as the root, as a leg and as its check: each is repaired, and prints its prompt again."""
    can = ("--capabilities", "ask,review,implement", "--autonomy", "workspace-write", "--repo", "acme/shop")
    for name, command in {"cat": "cat", "tee": "tee /dev/stderr"}.items():
        script.service("agent", "add", name, "--runtime", "shell", "--command", command, *can)
    shows = 'End with {"service_result": {"decision": "approved", "summary": "done"}}.'
    echo, goes_on = {"prompt": shows}, {"failure_policy": "continue"}
    legs = [
        leg("work") | echo | {"agent": "tee"} | goes_on,
        leg("made"),
        leg("check", "review", deps=["made"], synthesis_rule="verify") | echo | {"agent": "cat"} | goes_on,
    ]
    made, ends = {"write": {"made.txt": "1"}, "decision": "implemented"}, {"decision": "blocked"}
    script.answers(none={"delegations": legs}, made=made, normal=ends, replan=ends)
    tree = script.until_over(script.ask(f"reach the goal. {shows}"))
    ended = {job["delegation_id"]: (job["state"], job["decision"]) for job in tree["jobs"] if job["delegation_id"]}
    assert ended == {"work": ("failed", None), "made": ("succeeded", "implemented"), "check": ("failed", None)}
    assert tree["task"]["state"] == "blocked"
    root = script.service.json("agent", "ask", "cat", shows, "--repo", "acme/shop")["job_id"]
    assert states(script.until_over(root)) == {"none": "failed"}


def notifications(service: Installed, job: str) -> list[str]:
    path = service.home / "notifications.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [entry["kind"] for entry in map(json.loads, lines) if entry["root_job_id"] == job]


@pytest.mark.ruling("F1", "F2", "F5", "F6", "spec:states.human_questions")
def test_a_question_pauses_the_tree_until_somebody_answers(script: Script) -> None:
    script.answers(none=ASK | {"delegations": [leg("later", "ask")]})
    job = script.ask()
    until_paused(script, job)
    listed = script.service.json("attention")["waiting"]
    mine = next(row for row in listed if row["root_job_id"] == job)
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
    lines = script.service("resume", job, "answer", "store: redis: the big one", "--other").stdout.splitlines()
    assert lines[:2] == ["answer is accepted", "  store: redis: the big one"]
    assert lines[2].startswith(f"round 1 of {job} is over: answered by ")
    assert lines[3] == "the task goes on"
    tree = script.until_over(job)
    assert tree["task"]["state"] == "done"
    assert states(tree) == {"none": "succeeded", "answered": "succeeded"}
    prompt = script.prompt(f"{job}.1")
    assert "redis: the big one" in prompt
    assert '"later"' in prompt
    late = script.service("resume", job, "answer", "store: memory", code=3).stderr
    assert f"the task {job} has ended (done); round 1 of {job} is over: answered by " in late
    assert f"round 1 of {job} is over: answered by " in script.service("resume", job, code=4).stderr
    script.service.wait_for(lambda: notifications(script.service, job) == ["round_opened"])
    assert not [row for row in script.service.json("attention")["waiting"] if row["root_job_id"] == job]


@pytest.mark.ruling("F2", "G2.stops")
def test_a_question_leaves_a_sibling_alone_that_has_begun_in_the_same_moment(script: Script) -> None:
    """The question comes before the tree has heard of the sibling's begin."""
    script.answers(none={"delegations": [leg("one", "ask"), leg("two", "ask")]}, one=ASK, two={"wait": "go"})
    job = script.ask()
    until_paused(script, job)
    script.service("resume", job, "answer", "store: redis")
    (script.plans / "go").touch()
    tree = script.until_over(job)
    assert claim_rows.ordered_to_stop(script.service.seen.store, [(f"{job}.1", 1), (f"{job}.2", 1)]) == set()
    assert states(tree) == dict.fromkeys(("none", "one", "two", "answered"), "succeeded")
    assert "redis" in script.prompt(f"{job}.3")


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
        typed = (sys.executable, "-m", "cli.main", "resume", job, "answer", "store: memory", "--json")
        kept = json.loads(subprocess.check_output(typed, env=script.service.environment))
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
    script.service.wait_for(lambda: "round_opened" in notifications(script.service, job))
    assert notifications(script.service, job).count("round_opened") == 1


@pytest.mark.ruling("N5", "C6")
def test_a_token_that_may_only_ask_starts_no_implementation_by_way_of_a_lead(script: Script) -> None:
    script.answers(
        none={"delegations": [leg("build")]}, corrective={"delegations": [leg("look", "ask")]}, replan={}, look={}
    )
    token = script.service("bridge", "token", "add", "ci", "--scope", "ask").stdout.split()[-1]
    asked = httpx.post(
        f"{script.address}/v1/agents/lead/ask",
        json={"message": "build it", "repo": "acme/shop"},
        headers={"Authorization": f"Bearer {token}"},
    )
    tree = script.until_over(asked.json()["job_id"])
    assert {job["action"] for job in tree["jobs"]} == {"ask"}
    assert [job["delegation_id"] for job in tree["jobs"] if job["delegation_id"]] == ["look"]
    root = tree["task"]["root_job_id"]
    [refused] = [
        event for event in script.service.json("job", "events", root) if event["kind"] == "delegation_preflight_failed"
    ]
    assert "token of scope ask" in refused["message"]
    assert "never `implement`" in script.prompt(root)


@pytest.mark.ruling("G1.cut", "K6", "spec:limits.width")
def test_a_tree_that_asked_for_too_many_parts_is_cut_short_and_not_done(script: Script) -> None:
    script.answers(none={"delegations": [leg(f"part-{number}") for number in range(60)]})
    waited = script.service("agent", "ask", "lead", "do it all", "--repo", "acme/shop", "--wait", code=1).stdout
    reason = "cut short: the lead asked for 60 parts, the limit is 16 (`max_delegation_width`)"
    assert reason in " ".join(waited.split())
    [listed] = [row for row in script.service.json("job", "list") if row["tree"]["state"] == "cut_short"]
    assert listed["tree"]["waits_for"]["what"] == reason
    assert "write max_delegation_width = 60 below [orchestrate] in config.toml" in listed["tree"]["waits_for"]["next"]
    assert script.tree(listed["job_id"])["task"]["state"] == "done"
