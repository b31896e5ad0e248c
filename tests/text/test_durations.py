import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.text.durations import LONGEST_SECONDS, DurationError, abbreviate, format_duration, parse_duration


@pytest.mark.ruling("A10")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1d2h3m4s5ms", 93784.005),
        ("0s", 0),
        ("1.5h", 5400),
        ("90m", 5400),
    ],
)
def test_a_number_and_a_unit_combine_largest_first(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.ruling("A10")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("30", '"30s" for seconds'),
        ("1.5", '"1.5m" for minutes'),
        ("-5m", "positive"),
        ("5m1h", "largest first"),
        ("1h1h", "largest first"),
        ("", "such as"),
        ("1 h", "such as"),
        ("1H", "such as"),
        ("30min", "such as"),
        ("٣m", "such as"),
        ("1h\n", "such as"),
        ("9999999d", "at most 3650d"),
        ("9" * 5000 + "h", "such as"),
    ],
)
def test_a_fault_shows_the_right_form(text: str, says: str) -> None:
    with pytest.raises(DurationError, match=says):
        parse_duration(text)


@pytest.mark.ruling("A10")
@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("2 days", "2d"),
        ("1 Hour and 30 minutes", "1h30m"),
        ("1h 30m", "1h30m"),
        ("1.5 hrs", "1.5h"),
        ("1 day, 2 hours, 5 secs", "1d2h5s"),
        *((text, text) for text in ("2d", "250ms", "5 m 1 h", "1h1h", "soon", "2 daze", "-2 days", "30", "")),
    ],
)
def test_a_duration_that_is_spelt_out_is_abbreviated_and_nothing_else_is(text: str, short: str) -> None:
    assert abbreviate(text) == short


@pytest.mark.ruling("A10")
@given(st.integers(0, int(LONGEST_SECONDS) * 1000))
def test_what_is_written_is_read_back(milliseconds: int) -> None:
    written = format_duration(milliseconds / 1000)
    assert round(parse_duration(written) * 1000) == milliseconds
    assert format_duration(parse_duration(written)) == written
