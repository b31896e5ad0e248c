"""A log has a line for each event, whatever was said and whatever failed."""

import logging
import sys

import pytest

from activities.log_lines import OneLine
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
