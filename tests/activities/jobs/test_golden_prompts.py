"""The whole prompt of each kind of job. `GOLDEN=write` rewrites the files."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from activities.boxes import control_group
from activities.git.merges.task_line import TaskLine
from activities.git.work_folder.worktrees import Worktree
from activities.jobs.prompt import form_of, prompt_of
from activities.jobs.workspace import Workspace, branch_name
from activities.settings.model import Settings
from activities.store.registry import agent_rows
from tests.activities.jobs.conftest import Stage
from tests.fenced import unmarked
from tests.tree.prompted import BODIES, KINDS
from tests.tree.simulator import AGENTS
from workflows.contract.prompt_contract import Form, explain_contract
from workflows.model.jobs import JobRun

GOLDEN = Path(__file__).parent / "golden"
BASE, LINE = "b" * 40, "a" * 40
ROLES = {"coder": "writes code and tests", "lead": "splits work and judges it", "reader": "reviews, changes nothing"}
SETTINGS = {
    "runtimes": {
        "runtime_a": {"adapter": "codex", "default_model": "gpt-5.5"},
        "runtime_b": {"adapter": "claude", "structured": False},
        "runtime_c": {"adapter": "kimi"},
    }
}


def compare(name: str, text: str) -> None:
    golden = GOLDEN / f"{name}.md"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.fixture
def host(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a host with all three programs, a box made by bwrap and 8 GiB for each job."""
    monkeypatch.setattr(control_group, "job_limits", lambda *_: {control_group.MEMORY: 8 * 1024**3})
    stage = replace(stage, context=replace(stage.context, settings=Settings.model_validate(SETTINGS)))
    for agent in AGENTS:
        agent_rows.add(stage.context.store, agent.model_copy(update={"role": ROLES[agent.name]}), ("acme/shop",))
    for text in BODIES.values():
        stage.context.artifacts.put(text.encode())
    return stage


def place(host: Stage, run: JobRun) -> Workspace:
    """Return its work folder, as if all earlier work merged without conflicts."""
    legs = tuple(dict.fromkeys(each.leg for each in run.line if each.leg))
    names = [*legs, *(each.leg for each in run.deps if each.leg)]
    line = TaskLine(BASE, LINE if run.line else BASE, legs, legs=dict.fromkeys(names, LINE))
    return Workspace(
        host.repo, Worktree(Path("/srv/jobs/folder"), line.commit, branch_name(run), line.names), line=line
    )


def shown(host: Stage, run: JobRun) -> str:
    """Return the prompt, with constants for its mark and for the home."""
    return unmarked(prompt_of(host.context, run, place(host, run))).replace(str(host.context.home.root), "HOME")


@pytest.mark.ruling("E6", "E5", "B3", "P2", "P3", "P4", "spec:continuation_prompt")
def test_the_prompt_of_each_kind(host: Stage) -> None:
    for name, kind in KINDS.items():
        run = kind()
        prompt = shown(host, JobRun.model_validate_json(run.model_dump_json()))
        compare(name, prompt)
        form = form_of(run)
        assert prompt.endswith(explain_contract(form, 16 if form is Form.WHOLE else 0)), name


WRONG = """\
import json
leg = {"id": "build", "agent": "coder", "ephemeral": {"runtime": "codex"}, "action": "do", "prompt": "Build it."}
print(json.dumps({"service_result": {"decision": "ok", "delegations": [leg]}}))
"""
REPAIRS = {"repair": False, "repair-leaf": True}


@pytest.mark.ruling("A5", "P4")
@pytest.mark.parametrize("name", REPAIRS)
async def test_the_prompt_of_a_repair(stage: Stage, name: str) -> None:
    await stage.play(stage.job(WRONG, leaf=REPAIRS[name]))
    [prompt] = stage.context.home.runs.rglob("*repair*/prompt*")
    compare(name, unmarked(prompt.read_text()))


def test_there_is_no_file_of_a_kind_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.md")} == {*KINDS, *REPAIRS}
