"""The model a program reports, which may differ from the requested one (ruling K5)."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.agents.adapter import ProgramCall, ProgramReport
from activities.agents.shell import Shell
from activities.agents.streams import model_of
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from tests.activities.agents.recorded import a_run, read, recorded

pytestmark = pytest.mark.ruling("K5")


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


def rollout(folder: Path, session: str | None, *records: dict[str, Any]) -> None:
    """Write a session file of codex."""
    file = folder / f"home/sessions/2026/11/22/rollout-2026-11-22T02-27-35-{session}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(lines(*records))


def turn(model: object) -> dict[str, Any]:
    return {"type": "turn_context", "payload": {"turn_id": "t", "cwd": "/x", "model": model, "effort": "low"}}


@pytest.mark.parametrize(("case", "code"), [("fresh-ro", 0), ("write-then-500", 1)])
def test_codex_says_it_in_its_sessions_file_also_of_a_turn_that_failed(tmp_path: Path, case: str, code: int) -> None:
    output = recorded("codex", case)
    nothing = read(tmp_path, "codex", output, code=code, HOME=str(tmp_path))
    assert nothing.model is None
    odd = [{"type": "turn_context"}, turn(None), {"payload": 3}, {"type": "response_item", "payload": {"model": "no"}}]
    rollout(tmp_path, nothing.session, turn("gpt-5.5"), turn("gpt-6.1-sol"), *odd)
    assert read(tmp_path, "codex", output, code=code, HOME=str(tmp_path)).model == "gpt-6.1-sol"


@pytest.mark.parametrize("case", ["fresh-ro", "stream-json", "resume-ro"])
def test_claude_says_it_in_its_envelope(tmp_path: Path, case: str) -> None:
    assert read(tmp_path, "claude", recorded("claude", case)).model == "claude-opus-5-5"


def test_of_several_models_of_claude_it_is_the_one_that_used_most(tmp_path: Path) -> None:
    used = {
        "claude-haiku-5-5": {"inputTokens": 900},
        "claude-opus-5-5[1m]": {"inputTokens": 5, "cacheReadInputTokens": 9_000},
    }
    envelope = {"type": "result", "is_error": False, "result": "x", "modelUsage": used}
    assert read(tmp_path, "claude", (lines(envelope), b"")).model == "claude-opus-5-5[1m]"


def test_claude_that_was_cut_off_said_it_in_its_messages(tmp_path: Path) -> None:
    begun = {"type": "system", "subtype": "init", "model": "claude-opus-5-5"}
    fallen_back = {"type": "assistant", "message": {"model": "claude-sonnet-5-5", "content": []}}
    refused = {"type": "assistant", "message": {"model": "<synthetic>", "content": []}}
    assert read(tmp_path, "claude", (lines(begun), b""), code=143).model == "claude-opus-5-5"
    assert read(tmp_path, "claude", (lines(begun, fallen_back, refused), b""), code=143).model == "claude-sonnet-5-5"


def wire(folder: Path, *records: dict[str, Any]) -> ProgramReport:
    """Read a run of kimi with these lines in its session's file."""
    session = "session_6e8ba510-5069-40a2-919f-2fc5556bb7f3"
    file = folder / f"home/sessions/wd_x/{session}/agents/main/wire.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(lines(*records))
    return read(folder, "kimi", recorded("kimi", "fresh-ro"))


def request(alias: str, model: object) -> dict[str, Any]:
    return {"type": "llm.request", "modelAlias": alias, "model": model, "time": 5}


def record(model: str, tokens: int) -> dict[str, Any]:
    return {"type": "usage.record", "model": model, "usage": {"inputOther": tokens}, "time": 6}


def test_kimi_says_it_where_it_keeps_its_requests_by_the_name_behind_its_own(tmp_path: Path) -> None:
    report = wire(tmp_path, request("__kimi_env_model__", "kimi-k3"), record("__kimi_env_model__", 7))
    assert (report.model, report.usage.input_tokens) == ("kimi-k3", 7)


def test_of_several_models_of_kimi_it_is_the_one_that_used_most(tmp_path: Path) -> None:
    lines = (request("mine/big", "kimi-k3"), record("mine/big", 3), record("plain", 4), record("mine/big", 2))
    assert wire(tmp_path, *lines).model == "kimi-k3"


@pytest.mark.parametrize("records", [[], [record("__kimi_env_model__", 7)], [request("x", 3), record("", 4)]])
def test_kimi_that_does_not_say_it_says_nothing(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    assert wire(tmp_path, *records).model is None


def shell(folder: Path, *records: dict[str, Any]) -> ProgramReport:
    (folder / "stdout.log").write_bytes(lines(*records))
    call = ProgramCall(a_run("codex"), b"", None, folder, folder, folder)
    return Shell((), {}).read(call, RunEnd(EndKind.EXITED, folder, exit_code=0))


def test_a_shell_agent_may_say_it_in_its_usage_lines(tmp_path: Path) -> None:
    small = {"type": "usage", "input_tokens": 3, "model": "small"}
    big = {"type": "usage", "input_tokens": 1, "output_tokens": 9, "model": "big"}
    report = shell(tmp_path, small, big, {"type": "usage", "input_tokens": 90})
    assert (report.model, report.usage.total) == ("big", 103)
    assert shell(tmp_path, {"type": "usage", "input_tokens": 90}).model is None
    assert shell(tmp_path, {"type": "usage", "input_tokens": 90, "model": ["x"]}).usage.total == 90


@pytest.mark.parametrize(
    "name", [None, 3, "", "  ", "<synthetic>", "__kimi_env_model__", "a\nb", "a\0b", "\ud800", "x" * 201]
)
def test_what_is_no_name_of_a_model_is_none(name: object) -> None:
    assert model_of(name) is None


def test_a_name_is_kept_as_it_is() -> None:
    assert model_of(" anthropic/Claude-Opus-5-5[1m] ") == "anthropic/Claude-Opus-5-5[1m]"
