"""Everything that waits for a person, besides the pauses."""

import pytest
from pydantic_core import to_jsonable_python

from activities.settings.home import Home
from activities.store import job_rows, stall_rows
from bridge.operations.health import doctor
from bridge.operations.health.findings import Level
from bridge.operations.health.metrics import Metrics
from bridge.operations.home import overview
from bridge.operations.orders import attention
from bridge.operations.service import Service
from cli.drawing import daemon
from cli.main import main
from tests.bridge.seeds import job, task
from workflows.model.rows import RETRY, JobRecord, Records
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy.stalls import WAYS, Stall, StallKind

FIRST, SECOND, OVER = (f"job-{letter * 12}" for letter in "abc")


@pytest.mark.ruling("D4", "B3")
def test_blocked_tasks_wait_oldest_first_unless_nobody_can_open_them_again(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    service, blocked = Service(home), {"state": TaskState.BLOCKED, "reason": "leg one failed"}
    for root, more in (
        (SECOND, blocked | {"ended_at": 9.0, "next": "dismiss it", "waits_for": WaitsFor.DISMISS}),
        (FIRST, blocked | {"ended_at": 5.0, "next": "run it again", "waits_for": WaitsFor.RETRY}),
        (OVER, blocked | {"ended_at": 7.0, "next": f"{RETRY} nobody"}),
        ("job-000000000000", {"next": f"{RETRY} nobody", "waits_for": WaitsFor.RUNS}),
    ):
        job_rows.write(service.store, Records(task=task(root, **more)))
    report = attention.find(service)
    assert [each.root_job_id for each in report.blocked] == [FIRST, SECOND]
    assert [each["waits_for"] for each in to_jsonable_python(report)["blocked"]] == ["retry", "dismiss"]
    assert main(["attention"]) == 0
    shown = capsys.readouterr().out
    assert f"\n  because: leg one failed\n  run it again\n{SECOND}  blocked " in shown


@pytest.mark.ruling("B3")
def test_of_very_many_blocked_tasks_the_last_are_listed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(home)
    monkeypatch.setattr(attention, "AT_ONCE", 7)
    for number in range(attention.MOST_LISTED + 3):
        blocked = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.DISMISS, "ended_at": float(number)}
        job_rows.write(service.store, Records(task=task(f"job-{number:012d}", **blocked)))
    listed = [each.root_job_id for each in attention.find(service).blocked]
    assert listed == [f"job-{number:012d}" for number in range(3, attention.MOST_LISTED + 3)]


LEG, AGAIN = f"{FIRST}.1", f"{FIRST}.2"


@pytest.mark.ruling("C6", "B3")
@pytest.mark.parametrize(
    ("later", "clears"),
    [
        ((), False),
        ((job(LEG, delegation_id=None, continuation="corrective"),), False),
        ((job(LEG, delegation_id=None, continuation="corrective"), job(AGAIN, parent_job_id=LEG)), True),
        ((job(f"{FIRST}.3", parent_job_id=f"{FIRST}.9"),), False),
    ],
    ids=["nothing came later", "it is asked again", "the corrected set went through", "a set of somebody else"],
)
def test_a_preflight_flag_stands_until_a_later_set_of_its_coordinator_goes_through(
    home: Home, capsys: pytest.CaptureFixture[str], later: tuple[JobRecord, ...], clears: bool
) -> None:
    service = Service(home)
    flagged = job(FIRST, state=JobState.SUCCEEDED, preflight_failed="no agent `scuot`, did you mean `scout`?")
    job_rows.write(service.store, Records(task=task(FIRST), jobs=(flagged, *later)))
    assert [each.job_id for each in attention.find(service).preflight_failed] == ([] if clears else [FIRST])
    assert main(["attention"]) == 0
    shown = capsys.readouterr().out
    assert ("no agent `scuot`, did you mean `scout`?" in shown) is not clears
    assert (f"  service job tree {FIRST}\n" in shown) is not clears
    assert ("nothing needs you" in shown) is clears


@pytest.mark.ruling("C6", "B3")
@pytest.mark.parametrize(
    ("state", "waits"),
    [
        (TaskState.OPEN, True),
        (TaskState.AWAITING_HUMAN, True),
        (TaskState.BLOCKED, False),
        (TaskState.DONE, False),
        (TaskState.CANCELLED, False),
    ],
)
def test_a_preflight_flag_ends_with_its_task(home: Home, state: TaskState, waits: bool) -> None:
    service = Service(home)
    flagged = job(FIRST, state=JobState.SUCCEEDED, preflight_failed="no such agent")
    job_rows.write(service.store, Records(task=task(FIRST, state=state), jobs=(flagged,)))
    assert bool(attention.find(service).preflight_failed) is waits


@pytest.mark.ruling("B3")
def test_what_stands_still_is_listed_everywhere_with_the_commands_that_help(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(home)
    job_rows.write(service.store, Records(task=task(FIRST), jobs=(job(FIRST, state=JobState.RUNNING),)))
    job_rows.write(service.store, Records(task=task(OVER), jobs=(job(OVER, state=JobState.SUCCEEDED),)))
    ends = [Stall(StallKind.END, root, 1, 50.0, "web-1") for root in (FIRST, OVER)]
    stall_rows.replace(service.store, StallKind.END, "web-1", ends)
    stall_rows.replace(service.store, StallKind.STEP, "", [Stall(StallKind.STEP, FIRST, 12, 60.0)])
    end, step = attention.find(service).stalled
    assert end.message.startswith("its program ended on web-1, and that is not recorded since 1970")
    assert step.message.startswith("its next step does not succeed: attempt 12, since 1970")
    assert [item.stall and item.stall.what for item in attention.page(service, 0, 50).items] == [FIRST, FIRST]
    assert main(["attention"]) == 0
    assert f"{FIRST}  stands still: {end.message}\n  {WAYS[0]}\n  {WAYS[1]}\n" in capsys.readouterr().out
    stalls = list(doctor.stalls(service))
    assert [(each.level, each.says) for each in stalls] == [
        (Level.WRONG, f"{FIRST}: {stall.message}") for stall in (end, step)
    ]
    assert all(way in each.fix for way in WAYS for each in stalls)
    assert "stands still     2 stalled (service attention)" in map(str, daemon.figures(overview.find(service)))
    text, _ = Metrics(service).text("")
    assert b'service_stalled{kind="end"} 1.0' in text
    assert b'service_stalled{kind="step"} 1.0' in text
    stall_rows.replace(service.store, StallKind.STEP, "", [])
    assert [each.kind for each in attention.find(service).stalled] == [StallKind.END]
