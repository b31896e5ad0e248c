"""Agents of a fleet that follow a plan, and leave marks: the service's own rows prove nothing about what ran twice."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.fleet.machines import Fleet, Machine
from tests.waiting import wait_for

AGENT = """\
import json, os, pathlib, sys, time
sys.stdin.read()
plans, job = pathlib.Path(os.environ["PLANS"]), os.environ["SERVICE_JOB_ID"]
name = os.environ["SERVICE_DELEGATION_ID"] or os.environ["SERVICE_CONTINUATION"]
def mark(word):
    with (plans / "marks").open("a") as marks:
        marks.write(f"{word} {job} {os.environ['SERVICE_ATTEMPT']} {name} {os.environ['HOST']}\\n")
mark("begin")
known = [plans / each for each in (name, os.environ["SERVICE_AGENT"]) if (plans / each).exists()]
plan = json.loads(known[0].read_text()) if known else {}
for path, text in plan.pop("write", {}).items():
    pathlib.Path(path).write_text(text)
wait = plan.pop("wait", "")
while wait and not (plans / wait).exists():
    time.sleep(0.05)
mark("end")
print(json.dumps({"service_result": {"decision": "approved", "summary": "did " + name} | plan}))
"""


@dataclass(frozen=True)
class Play:
    """A plan for agents of all machines, and the marks that they leave."""

    fleet: Fleet
    folder: Path

    @classmethod
    def on(cls, fleet: Fleet, *machines: Machine) -> "Play":
        """Let agents of these machines play; their daemons are started afterwards."""
        folder = fleet.folder / "plans"
        folder.mkdir()
        (folder / "agent.py").write_text(AGENT)
        for machine in machines:
            machine.extra.update(PLANS=str(folder), HOST=machine.name)
        return cls(fleet, folder)

    def agent(self, machine: Machine, name: str, repo: str, *more: str) -> None:
        machine.register(name, f"python3 {self.folder / 'agent.py'}", *more, repo=repo)

    def answers(self, **plans: dict[str, Any]) -> None:
        """Define the answers by leg (`a_b` for `a-b`), or by agent; `none` is the first job of a tree."""
        for name, plan in plans.items():
            (self.folder / name.replace("_", "-")).write_text(json.dumps(plan))

    def go(self, name: str = "go") -> None:
        """Release the agents that wait for this file."""
        (self.folder / name).touch()

    def marks(self, word: str) -> Counter[tuple[str, str]]:
        """Return how often each attempt began, or ended, as its agents say."""
        return Counter((job, attempt) for mark, job, attempt, *_ in self.lines if mark == word)

    def places(self, leg: str) -> list[str]:
        """Return the hosts on which a leg's agents began, in order."""
        return [host for mark, _, _, name, host in self.lines if (mark, name) == ("begin", leg)]

    def wait_for(self, word: str, number: int) -> None:
        """Wait until so many attempts have begun, or ended."""
        wait_for(lambda: len(self.marks(word)) >= number, self.state)

    def state(self) -> str:
        """Return the marks, and the ends of the workers' logs, for a failure's message."""
        logs = (machine.home / "logs" / "worker.log" for machine in self.fleet.machines)
        ends = ["\n".join(log.read_text().splitlines()[-20:]) for log in logs if log.exists()]
        return "\n\n".join([*map(" ".join, self.lines), *ends])

    @property
    def lines(self) -> list[list[str]]:
        path = self.folder / "marks"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def over(machine: Machine, root: str) -> bool:
    return bool(machine.tree(root)["over"])


def ended_well(play: Play, machine: Machine, roots: list[str], jobs: int) -> None:
    """Wait until these trees have ended, and check that nothing was lost and nothing ran twice."""
    for root in roots:
        machine.wait_for(partial(over, machine, root))
        tree = machine.tree(root)
        states = [row["state"] for row in tree["jobs"]]
        assert states == ["succeeded"] * jobs, (root, states)
        parents = [row["parent_job_id"] for row in tree["jobs"] if row["continuation"] != "none"]
        assert len(parents) == len(set(parents)), f"a batch of {root} has two continuations"
    twice = {attempt: number for attempt, number in play.marks("begin").items() if number > 1}
    assert twice == {}
    assert len(play.marks("end")) == len(roots) * jobs
