"""Agents' verdicts and merges: the gate, refused merges, and merges by a person who insists (rulings L10, I5)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conflicts import conflicting, typed, writes
from tests.e2e.script import Script, git, leg, played, states

pytestmark = pytest.mark.ruling("L10", "I5")
VERIFIED = [leg("one"), leg("two"), leg("check", "review", deps=["one", "two"])]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("gate"))


def verified(script: Script, **check: Any) -> str:
    """Run a tree of two writers and a leg that checked both."""
    wrote = {"one": writes(a_txt="1\n"), "two": writes(b_txt="2\n")}
    script.answers(none={"delegations": VERIFIED}, check=check, **wrote)
    job = script.ask()
    assert script.until_over(job)["task"]["state"] == "done"
    return job


@pytest.mark.ruling("O6")
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
    said = service("job", "gate", job, code=3).stdout
    head = git(place, "rev-parse", "HEAD")
    assert f"review leg check ({job}.3) looked at" in said
    assert f"the head is {head[:7]}; next: git -C " in said


@pytest.mark.long
def test_what_a_reviewer_is_against_is_merged_only_by_somebody_who_insists(script: Script) -> None:
    job, service = verified(script, decision="changes_requested"), script.service
    assert f"review leg check ({job}.3) decided changes_requested" in service("job", "gate", job, code=3).stdout
    no = service("job", "merge", f"{job}.1", code=3).stderr
    assert f"leg one ({job}.1) is not approved: review leg check ({job}.3), which looked at it" in no
    assert f"service job show {job}.3" in no
    listed = service("job", "branches", job).stdout
    assert f"{job}.1 is merged only with --anyway: review leg check" in listed
    assert "all at once" not in listed
    service(*no.strip().splitlines()[-1].split()[1:])
    [told] = [each for each in service.json("job", "events", job) if each["kind"] == "branch_merged"]
    assert "although review leg check" in told["message"]
    assert told["data"]["actor"].endswith("(cli)")
    assert told["message"].startswith(told["data"]["actor"])


@pytest.mark.long
def test_the_printed_way_out_of_a_conflict_is_taken_whatever_a_leg_decided(script: Script) -> None:
    """The first leg rejects its own work."""
    job, service = conflicting(script, left={"decision": "changes_requested"}), script.service
    [way] = service.json("attention")["conflicts"]
    assert way["commands"][0] == f"service job merge {job}.1 --anyway"
    typed(script, way["commands"])
    service.wait_for(lambda: script.tree(job)["task"]["state"] == "done")
    assert states(script.tree(job))["see"] == "succeeded"
