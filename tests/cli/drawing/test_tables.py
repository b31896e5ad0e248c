"""Tables at every width."""

from collections.abc import Sequence

import pytest

from cli.drawing.lines import Tone, of_state
from cli.drawing.screens import Screen, rows_of
from cli.drawing.tables import Column, columns_of, fit, plain
from cli.drawing.widths import width
from cli.job import HEADINGS

pytestmark = pytest.mark.ruling("N6")

WHY = "The totals of an order were rounded before the tax was added, so that two cents were missing on long orders"
ROW = (
    *("job-0123456789ab", "succeeded", "implement", "builder", "acme/shop", "changes_requested", "12m ago"),
    *(WHY, "-"),
)


def shown(columns: Sequence[str | Column], rows: Sequence[Sequence[str]], room: int) -> list[str]:
    screen = Screen(room, colours=False)
    return [row for line in fit(columns_of(columns), rows, room) for row in rows_of(line, screen)]


def test_the_list_of_jobs_has_six_columns_at_eighty() -> None:
    head, row = shown(HEADINGS, [ROW], 80)
    assert head.split() == ["JOB", "STATE", "ACTION", "AGENT", "STARTED", "SUMMARY"]
    assert width(row) == 80
    assert row.startswith("job-0123456789ab  succeeded  implement  builder  12m ago  The totals")
    assert row.endswith("…")


def test_it_has_all_of_them_where_there_is_room() -> None:
    head, row = shown(HEADINGS, [(*ROW[:-1], "no route")], 240)
    assert head.split() == [each if isinstance(each, str) else each.heading for each in HEADINGS]
    assert "changes_requested" in row
    assert width(row) <= 240


@pytest.mark.ruling("C6")
def test_on_80_columns_preflight_faults_are_shown_where_there_are_any() -> None:
    flagged = (*ROW[:-1], "no agent `scuot`, did you mean `scout`?")
    head, row, _ = shown(HEADINGS, [flagged, ROW], 80)
    assert head.split()[-1] == "PREFLIGHT_FAILED:"
    assert "no agent `scuot`" in row
    assert "PREFLIGHT_FAILED:" not in shown(HEADINGS, [ROW], 80)[0], "nothing stands in it"


def test_the_narrowest_keeps_what_a_job_is_and_how_it_is() -> None:
    head, row = shown(HEADINGS, [ROW], 45)
    assert head.split() == ["JOB", "STATE", "SUMMARY"]
    assert row.split()[:2] == ["job-0123456789ab", "succeeded"]
    assert width(row) <= 45


@pytest.mark.parametrize("room", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("text", [WHY, "日本語の要約" * 20, "👩‍💻 fixed " * 20, "e\u0301te\u0301 " * 40])
def test_no_row_is_wider_than_the_terminal(room: int, text: str) -> None:
    columns = ("ID", Column("AGENT", least=6, leaves=1), Column("TEXT", least=10))
    rows = shown(columns, [("1", "builder", text), ("2", "scout", "short")], room)
    assert all(width(row) <= room for row in rows)
    at = [width(row[: row.index(word)]) for row, word in zip(rows, ("TEXT", text[:3], "short"), strict=True)]
    assert len(set(at)) == 1, "the last column begins at one place in all rows"


def test_wide_letters_are_aligned_without_a_terminal_too() -> None:
    rows = [("a", "日本", "x"), ("b", "ab", "y")]
    assert list(plain(columns_of(("N", "T", "Z")), rows)) == ["N  T     Z", "a  日本  x", "b  ab    y"]


def test_without_a_terminal_every_column_is_there_and_texts_end_where_they_did() -> None:
    head, row = plain(columns_of(HEADINGS), [ROW])
    assert head.split()[-1] == "PREFLIGHT_FAILED:"
    assert f"  {WHY[:59]}…  -" in row


def test_where_nothing_can_be_left_out_texts_are_cut_further() -> None:
    assert (
        shown(("ID", Column("TEXT", least=16)), [("job-0123456789ab", "x" * 50)], 24)[1] == "job-0123456789ab  xxxxx…"
    )


def test_an_empty_column_goes_before_a_text_is_cut() -> None:
    columns = (Column("TEXT", least=4), Column("B", leaves=1))
    assert shown(columns, [("x" * 40, "-")], 40) == ["TEXT", "x" * 40]
    assert shown(columns, [("x" * 40, "b")], 40)[0].split() == ["TEXT", "B"]


def test_an_empty_column_goes_before_others() -> None:
    columns = ("A", Column("B", leaves=9), Column("C", leaves=1))
    assert shown(columns, [("a" * 10, "b" * 10, "-")], 24)[0].split() == ["A", "B"]


def test_a_column_that_may_not_yield_is_never_cut() -> None:
    assert shown(("A", Column("B", leaves=1)), [("a" * 60, "b")], 40)[1:] == ["a" * 60]


def test_a_cell_leads_where_its_column_says_and_blanks_lead_nowhere() -> None:
    column = Column("JOB", link=lambda job: f"http://x/{job}")
    head, row = fit([column, Column("N", right=True)], [("job-1", "7")], 80)
    assert [(piece.text, piece.link) for piece in row.pieces if piece.link] == [("job-1", "http://x/job-1")]
    assert not any(piece.link for piece in head.pieces)


def test_numbers_stand_under_one_another() -> None:
    assert shown(("A", Column("JOBS", right=True)), [("x", "7"), ("y", "1,234")], 80) == [
        "A   JOBS",
        "x      7",
        "y  1,234",
    ]


def test_a_state_has_its_colour_though_it_is_cut() -> None:
    (_, row) = fit([Column("STATE", least=6, tone=of_state), Column("T")], [("succeeded", "x" * 33)], 41)
    assert row.pieces[0].tone is Tone.GOOD
    assert row.pieces[0].text == "succe…"
