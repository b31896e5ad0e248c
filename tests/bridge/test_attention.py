"""What waits for a person, beside the pauses."""

import pytest

from activities.settings.home import Home
from activities.store import jobs
from bridge.operations import people
from bridge.operations.service import Service
from cli.main import main
from tests.bridge.http.seeds import task
from workflows.tree.jobs import TaskState
from workflows.tree.records import RETRY, Records

FIRST, SECOND, OVER = (f"job-{letter * 12}" for letter in "abc")


@pytest.mark.ruling("D4", "B3")
def test_blocked_tasks_wait_oldest_first_unless_nobody_can_open_them_again(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    service, blocked = Service(home), {"state": TaskState.BLOCKED, "reason": "leg one ended failed"}
    for root, more in (
        (SECOND, blocked | {"ended_at": 9.0, "next": f"{RETRY} {SECOND}.1"}),
        (FIRST, blocked | {"ended_at": 5.0, "next": f"{RETRY} {FIRST}.1"}),
        (OVER, blocked | {"ended_at": 7.0, "next": "a finalized tree takes no retry: start a new one"}),
        ("job-000000000000", {"next": f"{RETRY} nobody"}),
    ):
        jobs.write(service.store, Records(task=task(root, **more)))
    found = people.attention(service)
    assert [each.root_job_id for each in found.blocked] == [FIRST, SECOND]
    assert [each["next"] for each in people.as_json(found)["blocked"]] == [f"{RETRY} {FIRST}.1", f"{RETRY} {SECOND}.1"]
    assert main(["attention"]) == 0
    shown = capsys.readouterr().out
    assert f"\n  leg one ended failed\n  {RETRY} {FIRST}.1\n{SECOND}  blocked " in shown
