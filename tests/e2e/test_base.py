"""The base of a tree: the commit of its start, whatever its operator does to the checkout meanwhile (ruling O1)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.store import attempt_rows
from tests.activities.git.conftest import commit_file, run_git
from tests.e2e.conflicts import writes
from tests.e2e.script import Script, leg, played

pytestmark = [pytest.mark.long, pytest.mark.ruling("O1")]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    for script in played(tmp_path_factory.mktemp("base")):
        commit_file(script.service.repo, "limiter.txt", "1\n")
        yield script


@pytest.fixture
def repo(script: Script) -> Path:
    """Return the checkout as it is before each test: on `main`, clean."""
    run_git(script.service.repo, "checkout", "-q", "main")
    return script.service.repo


def plan(script: Script, name: str, **answer: Any) -> None:
    """Set the answer of the next job of this name; running ones have read theirs."""
    script.plans.joinpath(name).write_text(json.dumps(answer))


def until_running(script: Script, job: str) -> None:
    script.service.wait_for(lambda: (script.plans / "prompts" / job).exists())


def bases(script: Script, root: str) -> dict[str, str | None]:
    """Return the commit that each job of a tree began from."""
    store = script.service.seen.store
    jobs = (job["job_id"] for job in script.tree(root)["jobs"])
    return {job: run.base_sha for job in jobs for run in attempt_rows.of_job(store, job)}


def test_what_the_operator_does_in_mid_tree_reaches_no_job_and_no_branch(script: Script, repo: Path) -> None:
    start = run_git(repo, "rev-parse", "HEAD")
    script.answers(
        none={"delegations": [leg("one"), leg("see", "review", deps=["one"])]},
        one=writes(one_txt="1\n") | {"wait": "go.1"},
        two=writes(two_txt="2\n") | {"wait": "go.2"},
        three=writes(three_txt="3\n") | {"wait": "go.3"},
    )
    job = script.ask()
    until_running(script, f"{job}.1")
    plan(script, "normal", delegations=[leg("two"), leg("see", "review", deps=["two"])])
    commit_file(repo, "secret.txt", "never to be published\n")
    script.plans.joinpath("go.1").touch()
    until_running(script, f"{job}.4")
    plan(script, "normal", delegations=[leg("three"), leg("see", "review", deps=["three"])])
    run_git(repo, "checkout", "-q", "-b", "aside", "HEAD~1")
    commit_file(repo, "aside.txt", "x\n")
    run_git(repo, "rebase", "-q", "main")
    script.plans.joinpath("go.2").touch()
    until_running(script, f"{job}.7")
    script.plans.joinpath("normal").unlink()
    run_git(repo, "reset", "-q", "--hard", "main")
    script.plans.joinpath("go.3").touch()
    assert script.until_over(job)["task"]["state"] == "done"

    service = script.service
    listed = service.json("job", "branches", job)
    legs = listed["legs"]
    assert set(bases(script, job).values()) == {start, *(row["head_sha"] for row in legs)}
    assert [row["leg"] for row in legs] == ["one", "two", "three"]
    assert listed["base"] == start
    earlier, began = list[str](), start
    for row in legs:
        earlier.append(f"{row['leg']}.txt")
        assert run_git(repo, "rev-list", "--count", f"{start}..{row['branch']}") == str(len(earlier))
        files = run_git(repo, "ls-tree", "--name-only", row["branch"]).split()
        assert files == sorted(["limiter.txt", *earlier])
        assert service.json("job", "diff", row["job_id"])["base"] == began
        began = row["head_sha"]
    run_git(repo, "checkout", "-q", legs[0]["branch"])
    commit_file(repo, "by-hand.txt", "x\n", "put there by hand")
    run_git(repo, "checkout", "-q", "main")
    refused = service("job", "merge", *(row["job_id"] for row in legs), code=3).stderr
    assert "put there by hand; nothing was merged" in refused
    leave = refused.partition("try: ")[2].partition("#")[0].split()
    run_git(repo, *leave[3:])
    service("job", "merge", *(row["job_id"] for row in legs))
    task = script.tree(job)["task"]["task_id"]
    assert run_git(repo, "ls-tree", "--name-only", f"service/{task}").split() == [
        *("limiter.txt", "one.txt", "three.txt", "two.txt"),
    ]
    run_git(repo, "checkout", "-q", "main")
    run_git(repo, "reset", "-q", "--hard", start)


def test_what_an_agent_merges_of_the_operators_work_is_named_and_not_merged(script: Script, repo: Path) -> None:
    service, program = script.service, script.service.tmp / "merger.py"
    program.write_text(MERGER)
    words = ("--runtime", "shell", "--command", f"python3 {program}", "--repo", "acme/shop")
    service("agent", "add", "merger", *words, "--capabilities", "implement", "--autonomy", "workspace-write")
    start = run_git(repo, "rev-parse", "HEAD")
    commit_file(repo, "secret.txt", "x\n", "never to be published")
    job = service.json("agent", "implement", "merger", "do it", "--repo", "acme/shop", "--base", start)["job_id"]
    script.until_over(job)
    for verb in ("merge", "gate"):
        refused = service("job", verb, job, code=3)
        assert "holds a commit that is not of this task: " in refused.stdout + refused.stderr
        assert "never to be published" in refused.stdout + refused.stderr
    hint = service("job", "merge", job, code=3).stderr.partition("try: ")[2]
    run_git(repo, *hint.partition("#")[0].split()[3:])
    assert service.json("job", "merge", job)["already"] == [job]
    run_git(repo, "reset", "-q", "--hard", start)


MERGER = """\
import json, pathlib, subprocess
pathlib.Path("own.txt").write_text("x")
who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
subprocess.run(["git", *who, "merge", "-q", "main"], check=True)
print(json.dumps({"service_result": {"decision": "implemented", "summary": "merged"}}))
"""
