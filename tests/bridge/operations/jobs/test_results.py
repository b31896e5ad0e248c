import pytest

from bridge.operations.jobs import results
from workflows.contract.parse import Accepted, Rejected

GOOD = b'{"service_result": {"decision": "approved", "summary": "ok"}}'


def test_check_and_report() -> None:
    reading = results.check(GOOD)
    assert isinstance(reading, Accepted)
    assert results.report(reading) == {
        "ok": True,
        "service_result": {
            "decision": "approved",
            "summary": "ok",
            "findings": [],
            "changes_made": [],
            "tests_run": [],
            "needs": [],
            "delegations": [],
        },
        "events": [],
    }
    assert results.report(results.check(b"{}"))["ok"] is False


@pytest.mark.ruling("A4")
def test_render_gives_the_comment_or_the_faults() -> None:
    assert results.render(GOOD) == "### Result: approved\n\n> ok\n"
    assert isinstance(results.render(b""), Rejected)


def test_schema_and_explanation_speak_of_the_same_key() -> None:
    assert results.result_schema()["required"] == ["service_result"]
    assert "service_result" in results.explain()
