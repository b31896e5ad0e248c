"""What is wrong with a result is said in words that its author can act on, and nothing of it is lost in silence."""

import pytest

from tests.contract.wrong_results import WRONG, Wrong
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.contract.repair_prompt import repair_prompt

ROWS = pytest.mark.parametrize("row", WRONG.values(), ids=WRONG)


def test_the_table_has_what_models_get_wrong() -> None:
    assert len(WRONG) >= 195


@pytest.mark.ruling("A1", "A3", "A4", "A5", "A7")
@ROWS
def test_it_is_taken_as_it_is_or_its_faults_are_all_named(row: Wrong) -> None:
    reading = read_result(row.output)
    if isinstance(reading, Accepted):
        assert not row.lines
        assert (reading.result.summary, len(reading.result.delegations)) == ("ok", row.legs)
        assert "".join(notice.message for notice in reading.notices) == row.notice
        return
    assert [fault.message[: len(line)] for fault, line in zip(reading.faults, row.lines, strict=True)] == [*row.lines]
    prompt = repair_prompt(reading.faults, row.output[-500:])
    assert all(f"\n{line}" in prompt for line in row.lines)


@pytest.mark.ruling("A3", "A5")
@ROWS
def test_sent_again_it_fails_or_a_notice_names_what_is_left_out(row: Wrong) -> None:
    reading = read_result(row.output, after_repair=True)
    if row.lines and not row.again:
        assert isinstance(reading, Rejected)
        return
    assert isinstance(reading, Accepted)
    assert "".join(notice.message for notice in reading.notices) == (row.again or row.notice)
