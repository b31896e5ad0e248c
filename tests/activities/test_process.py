"""A log has one line for each event, whatever its text or error."""

import logging
import sys

import pytest

from activities.process import OneLine
from tests.evil import EVIL, raw


@pytest.mark.ruling("N6")
def test_an_event_is_one_line_with_its_traceback() -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        fault = sys.exc_info()
    record = logging.LogRecord("a", logging.ERROR, "b.py", 1, "cannot: %s", (EVIL,), fault)
    line = OneLine("%(levelname)s %(message)s").format(record)
    assert line.startswith("ERROR cannot: error: FORGED")
    assert "Traceback" in line
    assert "\n" not in line
    assert not raw(line)


@pytest.mark.ruling("N7")
def test_it_holds_no_secret_of_messages_arguments_and_tracebacks() -> None:
    token = "ghp" + "_" + "a1B2" * 9
    try:
        raise ValueError(token)
    except ValueError:
        fault = sys.exc_info()
    line = OneLine("%(message)s").format(logging.LogRecord("a", logging.ERROR, "b.py", 1, "with %s", (token,), fault))
    assert line.startswith("with [redacted]")
    assert "ValueError: [redacted]" in line
    assert token not in line
