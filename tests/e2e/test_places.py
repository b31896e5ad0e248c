"""Twelve legs on a host with four slots: legs not begun when the tree is stopped never begin (ruling B5)."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.store import event_rows
from tests.e2e.conftest import Installed

pytestmark = [pytest.mark.long, pytest.mark.ruling("B5", "C8.limits")]
LEGS = [f"l{n:02}" for n in range(12)]
PLACES = 4
LEAD = """\
if [ "$SERVICE_CONTINUATION" = none ]; then cat "$(dirname "$0")/legs.json"; else
echo '{"service_result": {"decision": "approved", "summary": "summed up"}}'; fi
"""
LEG = """\
echo "$SERVICE_DELEGATION_ID" >> "$PROOF"
while [ ! -e "$PROOF.$SERVICE_DELEGATION_ID" ] && [ ! -e "$PROOF.go" ]; do sleep 0.1; done
cat "$(dirname "$0")/$SERVICE_DELEGATION_ID.json" 2>/dev/null ||
echo '{"service_result": {"decision": "approved", "summary": "done"}}'
"""


class Wide:
    """A tree of which four legs have begun; each has written its name into the proof."""

    def __init__(self, installed: Installed) -> None:
        self.service = installed
        installed.agent("lead", LEAD)
        installed.agent("leg", LEG)
        with (installed.home / "config.toml").open("a") as config:
            config.write(f"[worker]\nmax_parallel_jobs = {PLACES}\n")
        delegations = [{"id": leg, "agent": "leg", "action": "ask", "prompt": "wait"} for leg in LEGS]
        self.write("legs", decision="approved", delegations=delegations)

    def write(self, name: str, **result: Any) -> None:
        path = self.service.tmp / f"{name}.json"
        path.write_text(json.dumps({"service_result": {"summary": "said"} | result}))

    def start(self) -> str:
        self.service("daemon", "start")
        job = self.service.json("agent", "ask", "lead", "all of it", "--repo", "acme/shop")["job_id"]
        self.service.wait_for(lambda: len(self.begun) == PLACES)
        self.service.wait_for(lambda: list(self.states(job).values()).count("running") == PLACES)
        assert sorted(set(self.states(job).values())) == ["queued", "running"]
        return str(job)

    @property
    def begun(self) -> list[str]:
        return self.service.proof.split()

    def states(self, job: str) -> dict[str, str]:
        jobs = self.service.tree(job)["jobs"]
        return {row["delegation_id"]: row["state"] for row in jobs if row["delegation_id"]}

    def settled(self, job: str, state: str) -> bool:
        """Return whether each leg has begun or is taken back for good; a freed slot may have gone to one more."""
        events = event_rows.of_tree(self.service.seen.store, job)
        back = {event.job_id for event in events if event.kind == "job_taken_back"}
        jobs = [row for row in self.service.tree(job)["jobs"] if row["delegation_id"]]
        assert not {row["delegation_id"] for row in jobs if row["job_id"] in back} & set(self.begun)
        states = {row["state"] for row in jobs if row["job_id"] in back}
        return len(back) + len(self.begun) == len(LEGS) and states == {state}

    def go(self, name: str = "go") -> None:
        (Path(f"{self.service.tmp / 'proof'}.{name}")).touch()

    def until_over(self, job: str) -> dict[str, Any]:
        self.service.wait_for(lambda: bool(self.service.tree(job)["over"]))
        return self.service.tree(job)


@pytest.fixture
def wide(installed: Installed) -> Wide:
    return Wide(installed)


@pytest.mark.ruling("G2")
def test_a_kill_leaves_the_four_and_begins_no_other(wide: Wide) -> None:
    job = wide.start()
    wide.service("job", "kill", job)
    wide.service.wait_for(lambda: list(wide.states(job).values()).count("cancelled") == len(LEGS) - PLACES)
    wide.go()
    over = wide.until_over(job)
    assert over["task"]["state"] == "cancelled"
    assert sorted(wide.begun) == sorted(set(wide.begun))
    assert len(wide.begun) == PLACES
    assert [row["continuation"] for row in over["jobs"]][-1] == "finalize"


@pytest.mark.ruling("F8")
@pytest.mark.long
def test_a_pause_begins_no_other_until_it_is_over(wide: Wide) -> None:
    wide.write("asker", decision="approved", human_questions=[{"id": "q", "prompt": "which?"}])
    job = wide.start()
    first = wide.begun[0]
    (wide.service.tmp / "asker.json").rename(wide.service.tmp / f"{first}.json")
    wide.go(first)
    wide.service.wait_for(lambda: wide.service.tree(job)["task"]["state"] == "awaiting_human")
    wide.service.wait_for(lambda: wide.settled(job, "queued"))
    ran = list(wide.begun)
    wide.go()
    wide.service.wait_for(lambda: "running" not in wide.states(job).values())
    assert wide.begun == ran
    wide.service("resume", job, "answer", "this one")
    assert wide.until_over(job)["task"]["state"] == "done"
    assert sorted(wide.begun) == LEGS


@pytest.mark.ruling("D4")
@pytest.mark.long
def test_a_block_begins_no_other(wide: Wide) -> None:
    job = wide.start()
    first = wide.begun[0]
    wide.write(first, decision="failed")
    wide.go(first)
    wide.service.wait_for(lambda: wide.settled(job, "skipped"))
    ran = list(wide.begun)
    wide.go()
    assert wide.until_over(job)["task"]["state"] == "blocked"
    assert wide.begun == ran
