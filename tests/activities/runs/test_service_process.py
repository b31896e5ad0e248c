"""A log has one line for each event, whatever its text or error."""

import contextlib
import io
import logging
import sys

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from activities.runs.service_process import STORE_OUTAGE, OneLine
from activities.settings.home import Home
from activities.store.database import open_store
from tests import postgres
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


@pytest.mark.ruling("Q1")
def test_a_store_that_is_away_is_one_line_until_it_is_back(bare_home: Home) -> None:
    """Whoever logs it, with a traceback or without one; also when a connection broke amid a statement."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(OneLine("%(name)s: %(message)s"))
    handler.addFilter(STORE_OUTAGE)
    log = logging.getLogger("activities")
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    def asks() -> None:
        with contextlib.suppress(TypeError):
            try:
                asked(store)
            except SQLAlchemyError as error:
                log.warning("cannot look for orders: %s", error)
                raise TypeError("an activity failed") from error
        try:
            asked(store)
        except SQLAlchemyError:
            log.exception("completing an activity as failed")

    try:
        with postgres.running() as server:
            store = open_store(bare_home, server.url)
            for _ in range(2):
                server.kill()
                for _ in range(3):
                    asks()
                log.warning("something else")
                server.start()
                asked(store)
            store.dispose()
    finally:
        log.removeHandler(handler)
    logged = lines.getvalue().splitlines()
    assert [line.partition("; ")[0].partition(" (")[0] for line in logged] == [
        "activities: the store cannot be reached",
        "activities: something else",
        "activities.runs.service_process: the store is reached again",
    ] * 2
    assert "Traceback" not in lines.getvalue()


def asked(store: Engine) -> None:
    with store.connect() as connection:
        connection.execute(text("SELECT 1"))
