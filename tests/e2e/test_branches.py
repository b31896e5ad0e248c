"""Branches as people handle them: listed, judged, merged, dropped, and conflicts resolved until the tree continues."""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conflicts import WROTE, commands_of, conflicting, next_of, typed, writes
from tests.e2e.script import Script, git, leg, played, states, until_paused

VERIFIED = [leg("one"), leg("two"), leg("check", "review", deps=["one", "two"])]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("branches"))


@pytest.mark.ruling("I5", "E6")
def test_branches_are_listed_merged_once_and_dropped(script: Script) -> None:
    script.answers(none={"delegations": [leg("one"), leg("two")]}, one=writes(a_txt="1\n"), two=writes(b_txt="2\n"))
    job = script.ask()
    task = script.until_over(job)["task"]
    assert "service job merge" not in script.prompt(f"{job}.3"), "agents are refused it"
    assert script.service("job", "prompt", f"{job}.3").stdout == script.prompt(f"{job}.3")
    service, repo = script.service, script.service.repo
    listed = service.json("job", "branches", f"{job}.2")
    assert [(row["leg"], row["state"], row["ahead"], row["files"]) for row in listed["legs"]] == [
        ("one", "unmerged", 1, 1),
        ("two", "unmerged", 1, 1),
    ]
    assert f"all at once: service job merge {job}\n" in service("job", "branches", job).stdout
    head = git(repo, "rev-parse", "HEAD")
    assert "dropping it loses them" in service("job", "drop", f"{job}.1", code=3).stderr
    assert "is merged into" in service("job", "merge", f"{job}.1", f"{job}.2").stdout
    assert git(repo, "show", f"service/{task['task_id']}:b.txt") == "2\n"
    assert (git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")) == (head, "")
    again = service.json("job", "merge", f"{job}.1")
    assert (again["merged"], again["already"]) == ([], [f"{job}.1"])
    kinds = [event["kind"] for event in service.json("job", "events", job)]
    assert kinds.count("branch_merged") == 2
    service("job", "drop", f"{job}.1")
    states_now = [row["state"] for row in service.json("job", "branches", job)["legs"]]
    assert states_now == ["merged", "merged"]
    assert git(repo, "branch", "--list", f"service/{job}.1-one") == ""
    assert "has no branch" in service("job", "drop", f"{job}.1", code=4).stderr
    assert "+1\n" in service("job", "diff", f"{job}.1").stdout
    shown = service("job", "show", f"{job}.2").stdout
    assert "changed, but not reported:\n  ! b.txt" in shown
    assert "reported: src/a.py: not in the diff" in shown


@pytest.mark.ruling("I5", "B3", "D4", "spec:states.merge_conflict")
def test_a_conflict_is_resolved_with_the_printed_commands_and_the_tree_goes_on(script: Script) -> None:
    job = conflicting(script)
    service = script.service
    shown = service("job", "show", job).stdout
    assert f"part right ({job}.2) conflicts with left ({job}.1) in:\n  - same.txt\nto go on:" in shown
    assert f"service job retry {job}.3" in service("attention").stdout
    both = service("job", "merge", f"{job}.1", f"{job}.2", code=3).stderr
    assert f"part right ({job}.2) conflicts with part left ({job}.1) in same.txt; nothing was changed" in both
    [way] = service.json("attention")["conflicts"]
    assert way["commands"][-1] == f"service job retry {job}.3"
    typed(script, way["commands"][:-1])
    [way] = service.json("job", "show", f"{job}.3")["conflicts"]
    assert way["commands"] == [f"service job retry {job}.3"]
    typed(script, way["commands"])
    service.wait_for(lambda: script.tree(job)["task"]["state"] == "done")
    assert states(script.tree(job))["see"] == "succeeded"
    assert service.json("attention")["conflicts"] == []
    assert "+x" in service("job", "diff", f"{job}.3").stdout
    assert service("job", "diff", f"{job}.3", "--name-only").stdout == "seen.txt\n"


@pytest.mark.ruling("I5")
def test_a_conflict_ends_when_one_leg_is_dropped(script: Script) -> None:
    job = conflicting(script)
    service = script.service
    service("job", "drop", f"{job}.2", "--force")
    assert service.json("job", "branches", job)["legs"][1]["state"] == "dropped"
    assert "its commits are still there" in service("job", "merge", f"{job}.2", code=4).stderr
    service("job", "retry", f"{job}.3")
    service.wait_for(lambda: script.tree(job)["task"]["state"] == "done")
    assert states(script.tree(job))["see"] == "succeeded"


@pytest.mark.ruling("O7")
def test_the_commands_below_each_success_work(script: Script) -> None:
    """Each is typed in the order in which it is printed, from the start of a job to the end of its branches."""
    service, repo = script.service, script.service.repo
    head = git(repo, "rev-parse", "HEAD").strip()
    script.answers(none=writes(next_txt="1\n"))
    words = ("agent", "implement", "dev", "do it", "--repo", "acme/shop")
    started = service(*words).stdout
    job = started.split()[0]
    script.until_over(job)
    done, asked = service(*words, "--wait").stdout, service("agent", "ask", "lead", "Why?", *words[4:], "--wait").stdout
    assert next_of(service("job", "tree", job, "--watch").stdout) == [
        f"service job {do} {job}" for do in ("diff", "merge")
    ]
    assert next_of(asked)[0].startswith("service job tree job-")
    script.answers(none={"human_questions": [{"id": "color", "prompt": "which?"}]})
    asking = script.ask()
    until_paused(script, asking)
    resumed = service("resume", asking, "answer", "color: red").stdout
    for output, first in ((started, "service job tree"), (done, "service job diff"), (asked, ""), (resumed, "")):
        commands = next_of(output)
        assert (len(commands), commands[0].startswith(first)) == (2, True)
        typed(script, commands)
    merged = next_of(service("job", "merge", job).stdout)
    assert [command.split()[0] for command in merged] == ["git", "service"]
    subprocess.run(["sh", "-c", merged[0]], check=True, capture_output=True)
    typed(script, merged[1:])
    git(repo, "reset", "-q", "--hard", head)


@pytest.mark.ruling("O7")
def test_the_commands_below_what_is_registered_work(script: Script, tmp_path: Path) -> None:
    service, file = script.service, tmp_path / "hello.yaml"
    words = ("--runtime", "shell", "--command", "cat", "--repo", "acme/shop")
    ask, shows = next_of(service("agent", "add", "helper", *words).stdout)
    assert ask.startswith("service agent ask helper ")
    typed(script, [ask, shows])
    file.write_text("name: hello\nrepo: acme/shop\nstages:\n  - {id: say, kind: shell, command: echo hello}\n")
    run, shows = next_of(service("pipeline", "add", str(file)).stdout)
    watch, waiting = next_of(service(*run.split()[1:]).stdout)
    assert watch.startswith("service pipeline watch prun-")
    typed(script, [shows, watch, waiting])


@pytest.mark.ruling("O7")
def test_legs_of_several_trees_are_merged_by_the_printed_commands(script: Script) -> None:
    jobs = []
    for name in ("first.txt", "second.txt"):
        script.answers(none={"delegations": [leg("one")]}, one={"write": {name: "x"}} | WROTE)
        jobs.append(script.ask())
        script.until_over(jobs[-1])
    refused = script.service("job", "merge", *(f"{job}.1" for job in jobs), code=2).stderr
    assert "several tasks" in refused
    typed(script, commands_of(refused))
    assert [script.service.json("job", "branches", job)["legs"][0]["state"] for job in jobs] == ["merged", "merged"]


@pytest.mark.ruling("O7")
def test_the_ways_out_of_a_leg_that_runs(script: Script) -> None:
    script.answers(none={"delegations": [leg("one")]}, one=writes(a_txt="1\n") | {"wait": "go"})
    job, service = script.ask(), script.service
    service.wait_for(lambda: (script.plans / "prompts" / f"{job}.1").exists())
    watch = commands_of(service("job", "merge", f"{job}.1", code=3).stderr)
    assert watch == [f"service job tree {job}.1 --watch"]
    kill = commands_of(service("job", "drop", job, "--force", code=3).stderr)
    script.plans.joinpath("go").touch()
    typed(script, watch)
    assert service.json("job", "merge", f"{job}.1")["merged"] == [f"{job}.1"]
    script.answers(none={"delegations": [leg("one")]}, one=writes(a_txt="1\n") | {"wait": "never"})
    other = script.ask()
    service.wait_for(lambda: (script.plans / "prompts" / f"{other}.1").exists())
    typed(script, [command.replace(job, other) for command in kill])
    script.plans.joinpath("never").touch()
    script.until_over(other)
    assert "is dropped" in service("job", "drop", other, "--force").stdout


def three_generations(script: Script) -> str:
    """A tree in which `docs` conflicts with `code`, and `fix` repairs `code`, in which the check found faults."""
    check = leg("check", "review", synthesis_rule="verify")
    script.answers(
        none={"delegations": [leg("code"), leg("docs"), check | {"deps": ["code"]}]},
        code=writes(same_txt="code\n"),
        docs=writes(same_txt="docs\n"),
        check__1={"decision": "changes_requested"},
        replan={"delegations": [leg("fix"), check | {"id": "recheck", "deps": ["fix"]}]},
        fix=writes(same_txt="code, mended\n"),
    )
    job = script.ask()
    tree = script.until_over(job)
    assert tree["task"]["state"] == "done"
    assert [row["continuation"] for row in tree["jobs"] if not row["delegation_id"]] == ["none", "replan", "normal"]
    return job


def resolver(script: Script) -> None:
    """Let the next agent keep both sides: it only edits the file."""
    script.answers(none={"run": ["grep -q '<<<<<<<' same.txt && printf 'both\\n' > same.txt"]} | WROTE)


@pytest.mark.long
@pytest.mark.ruling("O6", "O7")
def test_what_a_line_leaves_out_is_resolved_by_an_agent(script: Script) -> None:
    job, service, repo = three_generations(script), script.service, script.service.repo
    left = service.json("job", "merge", job)["left_out"][0]
    resolver(script)
    output = service(*shlex.split(left["commands"][0])[1:]).stdout
    new = output.partition(":")[0]
    assert f"{new}: dev merges docs\n" in output
    script.until_over(new)
    prompt = script.prompt(new)
    assert "- `leg/docs` conflicts in `same.txt`" in prompt
    assert "The merge of `leg/docs` is begun in your folder" in prompt
    assert "nothing of this tree" not in service("job", "branches", new).stdout
    assert service.json("job", "gate", job)["state"] == "passing"
    merge = next_of(output)[-1].removeprefix("service ")
    assert service.json(*merge.split())["merged"] == [new]
    assert service.json("job", "merge", job)["left_out"] == []
    task = f"service/{script.tree(job)['task']['task_id']}"
    assert git(repo, "show", f"{task}:same.txt") == "both\n"
    assert "nothing of" in service("job", "resolve", job, code=3).stderr
    service("job", "drop", new)
    assert git(repo, "rev-parse", task), "it is of the task whose conflicts were resolved"
    service("job", "drop", job, "--force")
    assert git(repo, "branch", "--list", f"service/{job}*", f"service/{new}*", task) == ""


@pytest.mark.ruling("O6", "O7", "B3")
def test_a_conflict_that_blocks_is_resolved_by_an_agent(script: Script) -> None:
    job, service = conflicting(script), script.service
    resolve = f"service job resolve {job}"
    assert f"or let an agent resolve it:\n  {resolve}\n" in service("job", "show", job).stdout
    resolver(script)
    new = service.json(*shlex.split(resolve)[1:])["job_id"]
    script.until_over(new)
    script.answers()
    typed(script, [f"service job merge {new}"])
    [way] = service.json("attention")["conflicts"]
    assert way["commands"] == [f"service job retry {job}.3"]
    typed(script, way["commands"])
    service.wait_for(lambda: script.tree(job)["task"]["state"] == "done")
    assert service.json("job", "merge", job)["left_out"] == []


@pytest.mark.long
@pytest.mark.ruling("O6", "O7")
def test_a_conflict_with_the_branch_that_is_checked_out_is_resolved_by_an_agent(script: Script) -> None:
    service, repo = script.service, script.service.repo
    head = git(repo, "rev-parse", "HEAD").strip()
    script.answers(none=writes(same_txt="theirs\n"))
    job = service.json("agent", "implement", "dev", "do it", "--repo", "acme/shop")["job_id"]
    script.until_over(job)
    (repo / "same.txt").write_text("mine\n")
    git(repo, "add", "same.txt")
    git(repo, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "mine")
    refused = commands_of(service("job", "merge", job, "--into-mine", code=3).stderr)
    assert refused[0] == f"service job resolve {job} --with-mine"
    resolver(script)
    output = service(*shlex.split(refused[0])[1:]).stdout
    script.until_over(output.partition(":")[0])
    merge = next_of(output)[-1].removeprefix("service ")
    assert "fast-forwarded" in service(*merge.split()).stdout
    assert (repo / "same.txt").read_text() == "both\n"
    git(repo, "reset", "-q", "--hard", head)


@pytest.mark.long
@pytest.mark.ruling("O6", "O7")
def test_a_tree_of_three_generations_is_merged_by_its_line_and_dropped(script: Script) -> None:
    """Leg by leg `docs` would be merged first: the check found `code` wanting. Then `fix` would be refused."""
    job, service, repo = three_generations(script), script.service, script.service.repo
    shown = service("job", "branches", job).stdout
    assert f"all at once: service job merge {job}\n" in shown
    done = service.json("job", "merge", job)
    [left] = done["left_out"]
    assert left["leg"] == "docs"
    assert git(repo, "show", f"{done['task_branch']}:same.txt") == "code, mended\n"
    assert "part docs" in (output := service("job", "merge", job).stdout)
    assert all(f"\n  {command}\n" in output for command in left["commands"])
    typed(script, [command for command in left["commands"] if command.startswith("git")])
    assert service.json("job", "merge", job)["left_out"] == []
    head = git(repo, "rev-parse", "HEAD").strip()
    mine = service("job", "merge", job, "--into-mine").stdout
    assert f"your branch in {repo} has the work of {done['task_branch']} now (fast-forwarded)" in mine
    assert (repo / "same.txt").read_text() == "both\n"
    typed(script, next_of(mine))
    assert git(repo, "branch", "--list", f"service/{job}*", done["task_branch"]) == ""
    git(repo, "reset", "-q", "--hard", head)


def test_what_cannot_be_merged_is_refused_in_a_sentence(script: Script) -> None:
    script.answers(
        none={"delegations": [leg("empty"), leg("bad", failure_policy="continue"), leg("look", "ask")]},
        bad={"write": {"x": "1"}, "decision": "failed"},
    )
    job = script.ask()
    script.until_over(job)
    service = script.service
    assert "changed nothing" in service("job", "merge", f"{job}.1", code=3).stderr
    assert f"try: service job show {job}.2" in service("job", "merge", f"{job}.2", code=3).stderr
    assert "nothing of the task" in service("job", "retry", f"{job}.2", code=3).stderr, "it is not offered"
    typed(script, [f"service job show {job}.2"])
    assert "is a ask job" not in (refused := service("job", "merge", f"{job}.3", code=3).stderr)
    assert "has no branch" in refused
    moved = service.repo.rename(service.tmp / "moved")
    try:
        assert "has acme/shop moved?" in service("job", "merge", f"{job}.2", code=4).stderr
        assert "the repository cannot be read" in service("job", "branches", job).stdout
    finally:
        moved.rename(service.repo)


def verified(script: Script, **check: Any) -> str:
    """Run a tree of two writers and a leg that checked both."""
    wrote = {"one": writes(a_txt="1\n"), "two": writes(b_txt="2\n")}
    script.answers(none={"delegations": VERIFIED}, check=check, **wrote)
    job = script.ask()
    assert script.until_over(job)["task"]["state"] == "done"
    return job


@pytest.mark.long
@pytest.mark.ruling("L10", "I5", "O6")
def test_the_line_of_a_tree_is_ready_before_it_is_merged_and_after(script: Script) -> None:
    job, service = verified(script), script.service
    judged = service.json("job", "gate", job)
    assert judged["state"] == "passing"
    assert service.json("job", "merge", job)["head"] == judged["head"]
    assert service("job", "gate", f"{job}.3").stdout == "ready\n"
    assert service.json("job", "gate", job)["state"] == "passing"
    place, task = service.tmp / "place", f"service/{script.tree(job)['task']['task_id']}"
    git(service.repo, "worktree", "add", str(place), task)
    (place / "later.txt").write_text("later\n")
    git(place, "add", "-A")
    git(place, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-m", "later")
    gate = service("job", "gate", job, code=3).stdout
    head = git(place, "rev-parse", "HEAD")
    assert f"part check ({job}.3) looked at" in gate
    assert f"the head is {head[:7]}: it has not seen 1 commit in later.txt; next: service job review {job}" in gate
    script.answers(none={"decision": "approved"})
    script.until_over(service.json("job", "review", job)["job_id"])
    assert service("job", "gate", job).stdout == "ready\n"


@pytest.mark.long
@pytest.mark.ruling("L10", "I5")
def test_what_a_reviewer_is_against_is_merged_only_by_somebody_who_insists(script: Script) -> None:
    job, service = verified(script, decision="changes_requested"), script.service
    assert f"part check ({job}.3) asks for changes" in service("job", "gate", job, code=3).stdout
    no = service("job", "merge", f"{job}.1", code=3).stderr
    assert f"part one ({job}.1) is not approved: part check ({job}.3), which looked at it" in no
    assert f"service job show {job}.3" in no
    listed = service("job", "branches", job).stdout
    assert f"{job}.1 is merged only with --anyway: part check" in listed
    assert "all at once" not in listed
    service(*no.strip().splitlines()[-1].split()[1:])
    [event] = [row for row in service.json("job", "events", job) if row["kind"] == "branch_merged"]
    assert "although part check" in event["message"]
    assert event["data"]["actor"].endswith(", in the terminal")
    assert event["message"].startswith(event["data"]["actor"])


@pytest.mark.long
@pytest.mark.ruling("L10", "I5")
def test_the_printed_way_out_of_a_conflict_is_taken_whatever_a_leg_decided(script: Script) -> None:
    """The first leg rejects its own work."""
    job, service = conflicting(script, left={"decision": "changes_requested"}), script.service
    [way] = service.json("attention")["conflicts"]
    assert way["commands"][0] == f"service job merge {job}.1 --anyway"
    typed(script, way["commands"])
    service.wait_for(lambda: script.tree(job)["task"]["state"] == "done")
    assert states(script.tree(job))["see"] == "succeeded"
