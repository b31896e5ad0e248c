"""Texts of programs: all of them can be stored and transmitted (ruling B6)."""

from pathlib import Path

import pytest

from activities.agents.adapter import ProgramReport
from activities.agents.streams import usage_of
from activities.jobs import attempt_outcome as report
from activities.jobs.execution import Executed
from activities.jobs.judgement import Failure
from activities.jobs.workspace import Evidence
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from workflows.contract.models import Notice
from workflows.contract.size_limits import BOUNDS, MOST_TOKENS
from workflows.model.jobs import JobOutcome
from workflows.model.spend import Usage
from workflows.model.states import JobState
from workflows.policy.observation import Touched, observe

pytestmark = pytest.mark.ruling("B6")

BAD = "a\0b\ud800c\udcff"
GOOD = "a\ufffdb\ufffdc\ufffd"


def test_every_text_of_an_outcome_is_made_storable_and_short() -> None:
    notice = Notice(kind="result_unknown_keys_dropped", message=BAD * 10_000, data={"keys": [BAD * 500]})
    outcome = JobOutcome(
        job_id="j",
        state=JobState.FAILED,
        reason=BAD + "x" * 100_000,
        summary=BAD,
        findings=BAD,
        model=BAD + "m" * 1_000,
        conflict=BAD + "c" * 100_000,
        touched_files=(BAD,),
        notices=(notice,) * 60,
    )
    short = report.travelling(outcome)
    assert len(short.model_dump_json()) < 1_000_000
    assert (short.summary, short.findings, short.touched_files) == (GOOD, GOOD, (GOOD,))
    assert short.reason.startswith(GOOD)
    assert len(short.model or "") == BOUNDS["model"].characters
    assert report.travelling(short) == short


@pytest.mark.parametrize(
    ("session", "kept"), [("s" * 200, "s" * 200), ("s" * 201, None), (None, None), ("a\0", "a\ufffd")]
)
def test_a_session_s_name_is_kept_whole_or_not_at_all(session: str | None, kept: str | None) -> None:
    assert report.travelling(JobOutcome(job_id="j", state=JobState.FAILED, session=session)).session == kept


def test_evidence_and_diagnostics_too() -> None:
    evidence = Evidence(None, observation=observe([BAD + ".py"], Touched(files=(BAD + ".py",))))
    last = Executed(RunEnd(EndKind.EXITED, Path("/r")), ProgramReport(b"\0", Usage()), BAD)
    details = report.diagnostics(Failure("x"), [last], evidence)
    assert (details["stderr"], details["output"]) == (GOOD, "\ufffd")


def test_tokens_beyond_all_measure_are_counted_as_very_many() -> None:
    used = usage_of({"input_tokens": 10**400, "output_tokens": 5})
    assert used == Usage(input_tokens=MOST_TOKENS, output_tokens=5)
    assert (used + used).input_tokens == MOST_TOKENS
