"""Refused tool calls, as reported in streams that the real programs printed (ruling P5)."""

import json
from pathlib import Path

import pytest

from tests.activities.agents.recorded import STREAMS, read, recorded

pytestmark = pytest.mark.ruling("P5")

SESSION = "sessions/2026/11/25/rollout-2026-11-25T09-14-18-{}.jsonl"


@pytest.mark.parametrize(
    ("program", "refused"), [("codex", ("apply_patch",)), ("claude", ("Bash",)), ("kimi", ("Bash",))]
)
def test_the_calls_that_were_refused_are_reported(tmp_path: Path, program: str, refused: tuple[str, ...]) -> None:
    assert read(tmp_path, program, recorded(program, "refused")).refused == refused


@pytest.mark.parametrize(
    ("program", "case"),
    [
        ("codex", "fresh-ww"),
        ("codex", "failing-command"),
        ("claude", "stream-json"),
        ("claude", "fresh-ro"),
        ("kimi", "fresh-full"),
    ],
)
def test_a_run_in_which_nothing_was_refused_reports_nothing(tmp_path: Path, program: str, case: str) -> None:
    assert read(tmp_path, program, recorded(program, case)).refused == ()


def test_codex_commands_that_its_sandbox_stopped_are_found_in_the_turns_part_of_the_session(tmp_path: Path) -> None:
    """Codex does not print them. Refusals of an earlier turn of the session aren't this run's."""
    output = recorded("codex", "resume-ro")
    name = SESSION.format(read(tmp_path, "codex", output).session)
    file = tmp_path / "home" / name
    file.parent.mkdir(parents=True)
    turn = (STREAMS / "codex" / "session-file-refused.jsonl").read_text()
    file.write_text(turn)
    assert read(tmp_path, "codex", output, HOME=str(tmp_path)).refused == ("a command",)
    file.write_text(turn + json.dumps({"type": "event_msg", "payload": {"type": "task_started"}}) + "\n")
    assert read(tmp_path, "codex", output, HOME=str(tmp_path)).refused == ()


def test_claude_that_was_refused_a_look_alone_was_refused_no_write(tmp_path: Path) -> None:
    out, err = recorded("claude", "refused")
    assert read(tmp_path, "claude", (out.replace(b'"Bash"', b'"WebFetch"'), err)).refused == ()
