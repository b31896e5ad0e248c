"""Branches as people handle them: listed, merged, dropped, and conflicts resolved by hand until the tree goes on."""

from collections.abc import Iterator

import pytest

from tests.e2e.conflicts import conflicting, typed, writes
from tests.e2e.script import Script, git, leg, played, states


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
    assert [(each["leg"], each["state"], each["ahead"], each["files"]) for each in listed["legs"]] == [
        ("one", "unmerged", 1, 1),
        ("two", "unmerged", 1, 1),
    ]
    assert f"all at once: service job merge {job}.1 {job}.2" in service("job", "branches", job).stdout
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
    states_now = [each["state"] for each in service.json("job", "branches", job)["legs"]]
    assert states_now == ["merged", "merged"]
    assert git(repo, "branch", "--list", f"service/{job}.1-one") == ""
    assert "has no branch" in service("job", "drop", f"{job}.1", code=4).stderr
    assert "+1\n" in service("job", "diff", f"{job}.1").stdout
    shown = service("job", "show", f"{job}.2").stdout
    assert "changed without being claimed:\n  ! b.txt" in shown
    assert "reported: src/a.py: not in the diff" in shown


@pytest.mark.ruling("I5", "B3", "D4", "spec:states.merge_conflict")
def test_a_conflict_is_resolved_with_the_printed_commands_and_the_tree_goes_on(script: Script) -> None:
    job = conflicting(script)
    service = script.service
    shown = service("job", "show", job).stdout
    assert f"leg right ({job}.2) conflicts with left ({job}.1) in:\n  - same.txt\nto go on:" in shown
    assert f"service job retry {job}.3" in service("attention").stdout
    both = service("job", "merge", f"{job}.1", f"{job}.2", code=3).stderr
    assert f"leg right ({job}.2) conflicts with leg left ({job}.1) in same.txt; nothing was changed" in both
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


def test_what_cannot_be_merged_is_refused_in_a_sentence(script: Script) -> None:
    script.answers(
        none={"delegations": [leg("empty"), leg("bad", failure_policy="continue"), leg("look", "ask")]},
        bad={"write": {"x": "1"}, "decision": "failed"},
    )
    job = script.ask()
    script.until_over(job)
    service = script.service
    assert "changed nothing" in service("job", "merge", f"{job}.1", code=3).stderr
    assert f"try: service job retry {job}.2" in service("job", "merge", f"{job}.2", code=3).stderr
    assert "is a ask job" not in (refused := service("job", "merge", f"{job}.3", code=3).stderr)
    assert "has no branch" in refused
    other = script.ask()
    script.until_over(other)
    assert "several trees" in service("job", "merge", f"{job}.1", f"{other}.1", code=2).stderr
    moved = service.repo.rename(service.tmp / "moved")
    try:
        assert "has acme/shop moved?" in service("job", "merge", f"{job}.2", code=4).stderr
        assert "the repository cannot be seen" in service("job", "branches", job).stdout
    finally:
        moved.rename(service.repo)
