"""A daemon that moves the branch of a task to the line of its tree by itself (ruling O6)."""

from collections.abc import Iterator

import pytest

from tests.e2e.conflicts import writes
from tests.e2e.script import Script, git, leg, played

pytestmark = [pytest.mark.long, pytest.mark.ruling("O6")]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("finishing"), '[orchestrate]\nmerge = "line"\n')


def test_the_task_branch_is_moved_once_whatever_is_killed(script: Script) -> None:
    service, repo = script.service, script.service.repo
    script.answers(none={"delegations": [leg("one")]}, one=writes(a_txt="1\n") | {"wait": "go"})
    job = script.ask()
    service.wait_for(lambda: (script.plans / "prompts" / f"{job}.1").exists())
    service.kill("bridge")
    script.plans.joinpath("go").touch()
    task = f"service/{script.until_over(job)['task']['task_id']}"
    service.wait_for(lambda: "branch_merged" in kinds(script, job))
    head = git(repo, "rev-parse", task)
    assert git(repo, "show", f"{task}:a.txt") == "1\n"
    assert not (repo / "a.txt").exists()
    service.kill("bridge")
    assert service.json("job", "merge", job)["merged"] == []
    assert "branch_merged" in kinds(script, job)
    assert (kinds(script, job).count("branch_merged"), git(repo, "rev-parse", task)) == (1, head)


def kinds(script: Script, job: str) -> list[str]:
    return [event["kind"] for event in script.service.json("job", "events", job)]
