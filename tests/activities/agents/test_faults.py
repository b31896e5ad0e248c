"""Blockers and failures: all errors the programs were seen to make, and when limits end."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from activities.agents.faults import Blocker, BlockerKind, ContextFull, Failed, ModelRefused, kind_of, reset_time
from activities.runs.supervisor import EndKind
from tests.activities.agents.recorded import read, recorded

LOGIN, LIMIT, NETWORK = BlockerKind.LOGIN, BlockerKind.RATE_LIMIT, BlockerKind.NETWORK


@pytest.mark.parametrize(
    ("program", "case", "kind"),
    [
        ("codex", "http-401", LOGIN),
        ("codex", "http-401-default-retries", LOGIN),
        ("codex", "http-403", LOGIN),
        ("codex", "missing-key", LOGIN),
        ("codex", "http-429", LIMIT),
        ("codex", "http-500", NETWORK),
        ("codex", "write-then-500", NETWORK),
        ("codex", "close", NETWORK),
        ("codex", "truncate", NETWORK),
        ("codex", "sse-error", NETWORK),
        ("codex", "http-400", None),
        ("codex", "http-404", None),
        ("codex", "resume-unknown", None),
        ("claude", "http-401", LOGIN),
        ("claude", "not-logged-in", LOGIN),
        ("claude", "http-429", LIMIT),
        ("claude", "http-500", NETWORK),
        ("claude", "http-529", NETWORK),
        ("claude", "write-then-500", NETWORK),
        ("claude", "close", NETWORK),
        ("claude", "hang-api-timeout", NETWORK),
        ("claude", "http-400", None),
        ("claude", "http-404", None),
        ("claude", "max-turns", None),
        ("claude", "sigint-tool", None),
        ("claude", "resume-unknown", None),
        ("kimi", "http-401", LOGIN),
        ("kimi", "http-403", LOGIN),
        ("kimi", "no-model", LOGIN),
        ("kimi", "http-429", LIMIT),
        ("kimi", "http-500", NETWORK),
        ("kimi", "http-500-three-attempts", NETWORK),
        ("kimi", "close", NETWORK),
        ("kimi", "truncate", NETWORK),
        ("kimi", "http-400", None),
        ("kimi", "empty-answer", None),
        ("kimi", "resume-unknown", None),
    ],
)
def test_what_an_error_means(tmp_path: Path, program: str, case: str, kind: BlockerKind | None) -> None:
    fault = read(tmp_path, program, recorded(program, case), code=1).fault
    if kind is None:
        assert isinstance(fault, Failed)
    else:
        assert isinstance(fault, Blocker)
        assert fault.kind is kind
    assert program in fault.message
    if kind is LOGIN:
        assert isinstance(fault, Blocker)
        login = {"codex": "codex login", "claude": "claude /login", "kimi": "kimi, and in it /login"}[program]
        assert fault.hint.startswith(login)


def test_a_refused_model_is_known_in_a_recorded_run(tmp_path: Path) -> None:
    assert isinstance(read(tmp_path, "claude", recorded("claude", "http-404"), code=1).fault, ModelRefused)


@pytest.mark.parametrize(
    "message",
    [
        '{"detail":"The \'gpt-9\' model is not supported when using Codex with a ChatGPT account."}',
        "unexpected status 404 Not Found: The model `gpt-6.1-nope` does not exist or you do not have access to it.",
        "unexpected status 403 Forbidden: Project `p` does not have access to model `gpt-6`",
        "The requested model 'gpt-9' does not exist.",
        "code: model_not_found",
        "404 Not found the model kimi-k9 or Permission denied",
        "unknown model: k9",
    ],
)
def test_words_of_a_refused_model(tmp_path: Path, message: str) -> None:
    line = json.dumps({"type": "turn.failed", "error": {"message": message}}).encode()
    assert isinstance(read(tmp_path, "codex", (line, b""), code=1).fault, ModelRefused)


@pytest.mark.parametrize(
    "message",
    [
        "the model is sad",
        "the model called a tool that was not found",
        "No model configured. Run `kimi` and use /login to sign in",
        "status 503: the model is not available now",
        "the model does not support images",
    ],
)
def test_words_that_refuse_no_model(tmp_path: Path, message: str) -> None:
    line = json.dumps({"type": "turn.failed", "error": {"message": message}}).encode()
    assert not isinstance(read(tmp_path, "codex", (line, b""), code=1).fault, ModelRefused)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("codex", "Codex ran out of room in the model's context window. Start a new thread before retrying."),
        ("codex", "Your input exceeds the context window of this model. Please adjust your input and try again."),
        ("codex", '{"error": {"code": "context_length_exceeded"}}'),
        ("claude", "Prompt is too long"),
    ],
)
def test_a_context_that_is_too_long_is_known(tmp_path: Path, program: str, message: str) -> None:
    failed = {"type": "turn.failed", "error": {"message": message}}
    ended = {"type": "result", "is_error": True, "result": message, "api_error_status": 400}
    line = json.dumps(failed if program == "codex" else ended).encode()
    assert isinstance(read(tmp_path, program, (line, b""), code=1).fault, ContextFull)


@pytest.mark.parametrize("program", ["codex", "claude", "kimi"])
def test_a_program_that_is_killed_is_known(tmp_path: Path, program: str) -> None:
    fault = read(tmp_path, program, (b"", b""), signal=9).fault
    assert isinstance(fault, Blocker)
    assert (fault.kind, fault.message.endswith("was killed by signal 9")) == (BlockerKind.KILLED, True)
    assert isinstance(read(tmp_path, program, (b"", b""), signal=11).fault, Failed)


def test_an_envelope_that_claims_success_in_an_error_fails_with_exit_zero_too(tmp_path: Path) -> None:
    fault = read(tmp_path, "claude", recorded("claude", "http-401"), code=0).fault
    assert isinstance(fault, Blocker)


def test_a_good_envelope_counts_although_an_action_was_refused(tmp_path: Path) -> None:
    out, err = recorded("claude", "plan-shell")
    assert read(tmp_path, "claude", (out, err), code=1).fault is None
    assert isinstance(read(tmp_path, "claude", (out, b"boom"), code=1).fault, Failed)
    assert isinstance(read(tmp_path, "claude", (out, err), code=2).fault, Failed)


def test_what_a_failed_run_used_is_counted(tmp_path: Path) -> None:
    report = read(tmp_path, "claude", recorded("claude", "write-then-500"), code=1)
    assert (report.usage.input_tokens, report.usage.output_tokens) == (570, 50)


def test_a_call_the_program_does_not_take_asks_for_another_version(tmp_path: Path) -> None:
    fault = read(tmp_path, "codex", recorded("codex", "resume-bad-flag-place"), code=2).fault
    assert isinstance(fault, Blocker)
    assert fault.kind is BlockerKind.PROGRAM
    assert "unexpected argument '-s'" in fault.message
    assert "npm install -g @openai/codex" in fault.hint
    assert "[runtimes.runtime_a].arguments" in fault.hint


@pytest.mark.parametrize("program", ["codex", "claude", "kimi"])
def test_a_program_that_is_missing_names_what_to_install(tmp_path: Path, program: str) -> None:
    fault = read(tmp_path, program, (b"", b""), kind=EndKind.NOT_STARTED).fault
    assert isinstance(fault, Blocker)
    assert fault.kind is BlockerKind.PROGRAM
    assert fault.hint.startswith("npm install -g ")


def test_claude_says_when_a_used_up_window_ends(tmp_path: Path) -> None:
    fault = read(tmp_path, "claude", recorded("claude", "usage-limit"), code=1).fault
    assert isinstance(fault, Blocker)
    assert (fault.kind, fault.until) == (BlockerKind.RATE_LIMIT, 4102444800)
    out, err = recorded("claude", "http-429")
    event = '{"type":"rate_limit_event","rate_limit_info":{"status":"%s","resetsAt":4102444800}}\n'
    fault = read(tmp_path, "claude", ((event % "rejected").encode() + out, err), code=1).fault
    assert isinstance(fault, Blocker)
    assert fault.until == 4102444800
    other = read(tmp_path, "claude", ((event % "allowed").encode() + out, err), code=1).fault
    assert isinstance(other, Blocker)
    assert other.until is None


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("You've hit your usage limit. Upgrade to Pro or try again in 3 days 4 hours.", LIMIT),
        ("Claude AI usage limit reached|1762952400", LIMIT),
        ("You've hit your limit · resets 1:30am (Asia/Dhaka)", LIMIT),
        ("5-hour limit reached ∙ resets 2am", LIMIT),
        ("You exceeded your current quota, please check your plan", LIMIT),
        ("Your access token could not be refreshed. Please log in again.", LOGIN),
        ("API Error: 529 Overloaded", NETWORK),
        ("getaddrinfo ENOTFOUND api.example.invalid", NETWORK),
        ("API Error: 400 prompt mentions rate limit", None),
        ("unexpected status 404 Not Found: http://127.0.0.1:4291/v1/responses", None),
        ("the tests failed", None),
    ],
)
def test_words_of_people_with_accounts(message: str, kind: BlockerKind | None) -> None:
    assert kind_of(message) is kind


NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC).timestamp()


def at(*when: int) -> float:
    return datetime(*when, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("message", "until"),
    [
        ("limit reached|1795300000", 1795300000.0),
        ("limit reached|1095300000", None),
        ("resets at 2026-11-21T13:00:00Z", at(2026, 11, 21, 13)),
        ("Please try again in 20s.", NOW + 20),
        ("Please try again in 1.5s.", NOW + 1.5),
        ("Please try again in 898ms.", None),
        ("or try again in 3 days 4 hours 5 minutes.", NOW + 3 * 86400 + 4 * 3600 + 300),
        ("or try again in 32 minutes", NOW + 1920),
        ("Retry-After: 120", NOW + 120),
        ("resets 3pm (UTC)", at(2026, 11, 21, 15)),
        ("resets 2am (UTC)", at(2026, 11, 22, 2)),
        ("resets 11:30am (UTC)", None),
        ("Your limit will reset. resets 1:30am (Asia/Dhaka)", at(2026, 11, 21, 19, 30)),
        ("resets Nov 25, 9am (UTC)", at(2026, 11, 25, 9)),
        ("try again at Nov 29th, 2026 10:15 PM (UTC)", at(2026, 11, 29, 22, 15)),
        ("resets Feb 31, 9am (UTC)", None),
        ("resets 25:99", None),
        ("the limit resets every 5h and every week", None),
        ("nothing", None),
    ],
)
def test_when_a_limit_ends(message: str, until: float | None) -> None:
    assert reset_time(message, NOW) == until
