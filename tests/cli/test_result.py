import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.result import app
from workflows.model.errors import NotFoundError, UsageError

GOOD = 'Done. {"service_result": {"summary": "ok", "decision": "approved"}} Bye.'
BAD = '{"service_result": {"decision": "nope", "findings": 1}}'
CANONICAL = (
    '{"service_result":{"decision":"approved","summary":"ok","findings":[],"changes_made":[],"tests_run":[],"needs":[],'
    '"delegations":[]}}\n'
)


def run(*words: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, words, input=stdin)


class TestCheck:
    def test_a_good_output_prints_the_canonical_object(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text(GOOD)
        for result in (run("check", str(tmp_path / "out")), run("check", "-", stdin=GOOD), run("check", stdin=GOOD)):
            assert (result.exit_code, result.stdout, result.stderr) == (0, CANONICAL, "")

    @pytest.mark.ruling("C1")
    def test_of_more_delegations_than_there_may_be_it_says_that_none_goes_out(self) -> None:
        legs = [{"id": f"l{n}", "agent": "dev", "action": "ask", "prompt": "look"} for n in range(257)]
        body = {"decision": "approved", "summary": "ok", "delegations": legs}
        result = run("check", stdin=json.dumps({"service_result": body}))
        assert (result.exit_code, result.stdout) == (0, CANONICAL)
        assert "257 delegations are more than the 256 a result may have" in result.stderr
        events = json.loads(run("check", "--json", stdin=json.dumps({"service_result": body})).stdout)["events"]
        assert [each["kind"] for each in events] == ["delegation_width_exceeded"]

    @pytest.mark.ruling("A4")
    def test_a_bad_one_prints_every_fault_on_a_line(self) -> None:
        result = run("check", stdin=BAD)
        assert (result.exit_code, result.stdout) == (1, "")
        assert [line.partition(" must")[0] for line in result.stderr.splitlines()] == [
            "decision",
            "summary is required",
            "findings",
        ]

    def test_json_for_programs(self) -> None:
        result = run("check", "--json", stdin=GOOD + GOOD)
        document = json.loads(result.stdout)
        assert result.exit_code == 0
        assert (document["ok"], document["service_result"]["summary"]) == (True, "ok")
        assert [event["kind"] for event in document["events"]] == ["result_ambiguous"]
        result = run("check", "--json", stdin=BAD)
        document = json.loads(result.stdout)
        assert (result.exit_code, result.stderr, document["ok"]) == (1, "", False)
        assert document["faults"][1] == {"path": "summary", "message": "summary is required"}

    @pytest.mark.ruling("A1")
    def test_a_notice_is_said_beside_the_result(self) -> None:
        result = run("check", stdin=GOOD + GOOD)
        assert result.stdout == CANONICAL
        assert result.stderr == "note: the output holds 2 valid results; the last one counts\n"

    def test_bytes_are_fine(self) -> None:
        assert run("check", stdin=b"\xff" + GOOD.encode()).stdout == CANONICAL

    @pytest.mark.ruling("K6")
    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        assert isinstance(run("check", str(tmp_path / "none")).exception, NotFoundError)
        assert isinstance(run("check", str(tmp_path)).exception, UsageError)

    @pytest.mark.ruling("K6")
    def test_a_terminal_is_told_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = os.fdopen(pty.openpty()[1], "r")
        monkeypatch.setattr(sys, "stdin", terminal)
        with terminal, pytest.raises(UsageError, match="standard input is a terminal") as caught:
            app(["check"], standalone_mode=False)
        assert "service result check FILE" in caught.value.hint


class TestSchemaAndRender:
    def test_schema_is_json_and_prompt_is_prose(self) -> None:
        assert json.loads(run("schema").stdout)["required"] == ["service_result"]
        assert run("schema", "--prompt").stdout.startswith("## How to end this job\n")

    def test_render_prints_the_comment(self) -> None:
        result = run("render", stdin=GOOD)
        assert (result.exit_code, result.stdout) == (0, "### Result: approved\n\n> ok\n")

    def test_render_of_no_result_prints_the_faults(self) -> None:
        result = run("render", "-", stdin=BAD)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "summary is required\n" in result.stderr


def test_the_module_itself_is_light() -> None:
    code = (
        "import sys, cli.result; print([m for m in sys.modules if m.startswith(('pydantic', 'workflows', 'bridge'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
