"""What is logged."""

import io
import logging

import pytest

from activities.redaction import logs

TOKEN = "ghp" + "_" + "a1B2" * 9


@pytest.mark.ruling("N7")
def test_a_log_holds_no_secret_of_messages_arguments_and_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    root = logging.Logger("root")
    root.addHandler(handler)
    monkeypatch.setattr(logging, "getLogger", lambda: root)
    logs.install()
    logs.install()
    root.warning("with %s", TOKEN)
    try:
        raise ValueError(TOKEN)
    except ValueError:
        root.exception("it failed")
    assert TOKEN not in written.getvalue()
    assert written.getvalue().startswith("WARNING with [redacted]\n")
    assert "ValueError: [redacted]" in written.getvalue()
