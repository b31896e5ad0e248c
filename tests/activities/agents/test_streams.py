"""Streams of the real programs: their text, tokens and session, for any chunks."""

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.agents import streams
from activities.agents.faults import Failed
from activities.agents.streams import Messages, records
from activities.runs.supervisor import EndKind
from tests.activities.agents.recorded import STREAMS, pieces, read, recorded
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.model.spend import Usage

ALL = sorted(STREAMS.glob("*/*.stdout"))


def usage(read: int, written: int, requests: int | None) -> Usage:
    return Usage(input_tokens=read, output_tokens=written, requests=requests)


@pytest.mark.parametrize(
    ("program", "case", "used", "session"),
    [
        ("codex", "fresh-ro", (1000, 50, None), "01a1fadb-31a1-7ea2-ab7f-f3f4a99bb764"),
        ("codex", "resume-ro", (2000, 100, None), "01a1fadb-31a1-7ea2-ab7f-f3f4a99bb764"),
        ("claude", "fresh-ro", (570, 50, None), "13d9e916-357b-49cb-81e9-62f85582ed1c"),
        ("claude", "stream-json", (1710, 150, 3), "39f7d7cf-1c17-4cea-9d58-62599d1eea0b"),
        ("kimi", "fresh-ro", (0, 0, None), "session_6e8ba510-5069-40a2-919f-2fc5556bb7f3"),
    ],
)
@pytest.mark.ruling("S6", "spec:limits.token_capture")
def test_a_run_that_went_well(
    tmp_path: Path, program: str, case: str, used: tuple[int, int, int | None], session: str
) -> None:
    report = read(tmp_path, program, recorded(program, case))
    assert report.fault is None
    assert isinstance(read_result(report.text), Accepted)
    assert report.usage == usage(*used)
    assert report.session == session
    assert report.cumulative == (program == "codex")


@pytest.mark.parametrize("program", ["codex", "claude", "kimi"])
def test_the_last_message_is_the_text_and_commentary_is_not(tmp_path: Path, program: str) -> None:
    assert read(tmp_path, program, recorded(program, "two-messages")).text == b"Final answer only here."


@pytest.mark.ruling("S6")
@pytest.mark.parametrize(
    ("case", "code", "used"),
    [
        ("structured", 0, (1140, 100, 2)),
        ("structured-in-vain", 1, (2280, 200, 5)),
        ("structured-refused", 0, (1710, 150, 3)),
    ],
)
def test_what_claudes_tool_for_results_took_or_refused_is_read_as_its_last_message(
    tmp_path: Path, case: str, code: int, used: tuple[int, int, int]
) -> None:
    """A result that the tool refuses five times ends the run, of whose last request Claude counts no tokens, and is
    repaired like any other.
    """
    report = read(tmp_path, "claude", recorded("claude", case), code)
    assert report.fault is None
    reading = read_result(report.text)
    if isinstance(reading, Rejected):
        assert [fault.path for fault in reading.faults] == ["decision"]
    assert isinstance(reading, Rejected) is (case == "structured-in-vain")
    assert report.usage == usage(*used)


def test_a_result_that_is_followed_by_a_farewell_is_still_found() -> None:
    messages = Messages()
    for message in ("Looking.", '{"service_result": {"decision": "approved"}}', 'That was my "service_result". Bye.'):
        messages.add(message)
    assert messages.text == b'{"service_result": {"decision": "approved"}}'


@pytest.mark.parametrize("stream", ALL, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_byte_by_byte_it_reads_the_same(stream: Path) -> None:
    text = stream.read_bytes()
    whole = list(records([text]))
    assert whole == [json.loads(line) for line in text.splitlines()]
    assert list(records(pieces(text, [1]))) == whole


@given(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=20), which=st.sampled_from(ALL))
def test_cut_anywhere_it_reads_the_same(sizes: list[int], which: Path) -> None:
    text = which.read_bytes()
    assert list(records(pieces(text, sizes))) == list(records([text]))


@given(noise=st.binary(max_size=200), sizes=st.lists(st.integers(1, 40), min_size=1))
def test_noise_between_records_is_passed_over(noise: bytes, sizes: list[int]) -> None:
    noise = noise.replace(b"{", b"(")
    text = b'{"a": 1}\n' + noise + b'\n{"b": \n[1]\n' + b"[" * 5000 + b'\n{"a": 2}'
    assert [each for each in records(pieces(text, sizes)) if "a" in each] == [{"a": 1}, {"a": 2}]


def test_a_nesting_too_deep_to_be_read_is_noise() -> None:
    assert list(records([b'{"a":' * 200_000 + b"\n", b'{"b": 1}\n'])) == [{"b": 1}]


def test_a_record_of_five_megabytes_is_read_whole(tmp_path: Path) -> None:
    text = "x" * (5 * 1024 * 1024)
    item = {"type": "item.completed", "item": {"type": "agent_message", "text": text}}
    lines = [{"type": "thread.started", "thread_id": "t"}, item, {"type": "turn.completed", "usage": {}}]
    report = read(tmp_path, "codex", ("".join(json.dumps(each) + "\n" for each in lines).encode(), b""))
    assert (report.text.decode(), report.fault) == (text, None)


def test_a_line_beyond_all_measure_is_passed_over_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "RECORD_LIMIT", 64 * 1024)

    def endless() -> Iterator[bytes]:
        yield b'{"a": 1}\n{"long": "'
        for _ in range(400):
            yield b"x" * 64 * 1024
        yield b'"}\n{"a": 2}\n'

    tracemalloc.start()
    try:
        assert list(records(endless())) == [{"a": 1}, {"a": 2}]
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.ruling("N3")
def test_of_a_giant_file_the_beginning_and_the_end_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_READ", 2000)
    monkeypatch.setattr(streams, "CHUNK", 100)
    (tmp_path / "log").write_bytes(b"".join(b'{"number": %d}\n' % number for number in range(1000)))
    read = [each["number"] for each in records(streams.chunks(tmp_path / "log"))]
    assert read[0] == 0
    assert read[-1] == 999
    assert 100 < len(read) < 150
    assert streams.left_out(tmp_path / "log") == (tmp_path / "log").stat().st_size - 2000


def test_only_the_last_messages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "TEXT_LIMIT", 10)
    messages = Messages()
    for message in ("aaaa", "bbbb", "cccc", None):
        messages.add(message)
    assert list(messages._kept) == ["bbbb", "cccc"]


def test_a_version_without_events_has_its_output_for_text_and_used_nothing(tmp_path: Path) -> None:
    report = read(tmp_path, "codex", (b'thinking\n{"service_result": {}}\n', b""))
    assert (report.text, report.usage, report.fault) == (b'thinking\n{"service_result": {}}\n', Usage(), None)


def test_kimi_may_report_tokens_on_any_line(tmp_path: Path) -> None:
    line = b'{"role":"assistant","content":"hi","usage":{"prompt_tokens":7,"completion_tokens":2}}\n'
    assert read(tmp_path, "kimi", (line, b"")).usage == Usage(input_tokens=7, output_tokens=2)
    bad = b'{"role":"assistant","content":"hi","usage":{"prompt_tokens":-7,"completion_tokens":true}}\n'
    assert read(tmp_path, "kimi", (bad, b"")).usage == Usage()


@pytest.mark.ruling("P6", "P7.given")
def test_the_prompt_that_kimi_prints_as_a_result_of_its_hook_is_no_message(tmp_path: Path) -> None:
    asked = 'UserPromptSubmit hook\n\n# Job\nEnd with {"service_result": {"decision": "approved", "summary": "x"}}'
    lines = [{"role": "assistant", "content": asked}, {"role": "assistant", "content": "I cannot."}]
    out = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert read(tmp_path, "kimi", (out, b"")).text == b"I cannot."
    assert isinstance(read(tmp_path, "kimi", (out.splitlines()[0], b"")).fault, Failed)


def test_kimis_session_file_tells_what_it_used_since_the_run_began(tmp_path: Path) -> None:
    out, err = recorded("kimi", "fresh-ro")
    wire = tmp_path / "home/sessions/wd_x/session_6e8ba510-5069-40a2-919f-2fc5556bb7f3/agents/main/wire.jsonl"
    wire.parent.mkdir(parents=True)
    lines = (STREAMS / "kimi" / "session-file-usage-lines.jsonl").read_bytes()
    old = lines.splitlines()[0].replace(b'"time":1795210171621', b'"time":-1')
    wire.write_bytes(old + b"\n" + lines)
    assert read(tmp_path, "kimi", (out, err)).usage == usage(4000, 200, 4)


def test_kimis_failed_run_is_found_by_its_worktree_and_counted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    wire = home / "sessions/wd_x/session_b/agents/main/wire.jsonl"
    wire.parent.mkdir(parents=True)
    wire.write_bytes((STREAMS / "kimi" / "session-file-usage-lines.jsonl").read_bytes())
    begun = [("session_a", tmp_path / "tree"), ("session_b", tmp_path / "tree"), ("session_c", tmp_path / "other")]
    lines = [json.dumps({"sessionId": session, "workDir": str(place)}) for session, place in begun]
    (home / "session_index.jsonl").write_text("\n".join(lines))
    report = read(tmp_path, "kimi", recorded("kimi", "write-then-500"), code=1)
    assert (report.session, report.usage) == ("session_b", usage(4000, 200, 4))


def test_codex_failed_turn_is_counted_from_the_sessions_file(tmp_path: Path) -> None:
    failed = recorded("codex", "write-then-500")
    nothing = read(tmp_path, "codex", failed, code=1, HOME=str(tmp_path))
    assert (nothing.usage, nothing.cumulative) == (Usage(), False)
    rollout = tmp_path / f"home/sessions/2026/11/20/rollout-2026-11-20T21-27-11-{nothing.session}.jsonl"
    rollout.parent.mkdir(parents=True)
    no_count = b'{"type":"event_msg","payload":{"type":"token_count","info":null}}\n{"payload":3}\n'
    rollout.write_bytes((STREAMS / "codex" / "session-file-usage-lines.jsonl").read_bytes() + no_count)
    report = read(tmp_path, "codex", failed, code=1, HOME=str(tmp_path))
    assert (report.usage, report.cumulative) == (usage(4000, 200, 4), True)


@pytest.mark.parametrize("program", ["codex", "claude", "kimi"])
def test_nothing_at_all_is_no_success(tmp_path: Path, program: str) -> None:
    """Claude exits with 0 and prints nothing when it is interrupted."""
    report = read(tmp_path, program, (b"", b""))
    assert isinstance(report.fault, Failed) or (program == "codex" and report.text == b"")


def test_codex_that_ends_in_the_middle_of_a_turn_failed(tmp_path: Path) -> None:
    out, err = recorded("codex", "fresh-ro")
    report = read(tmp_path, "codex", (b"\n".join(out.splitlines()[:-1]), err))
    assert isinstance(report.fault, Failed)


@pytest.mark.ruling("K5", "spec:limits.token_capture")
def test_the_tokens_of_a_run_of_claude_that_was_stopped_are_those_of_its_messages(tmp_path: Path) -> None:
    out, err = recorded("claude", "stream-json")
    *messages, envelope = out.splitlines(keepends=True)
    assert b'"type":"result"' in envelope
    stopped = read(tmp_path, "claude", (b"".join(messages), err), kind=EndKind.TIMED_OUT)
    assert (stopped.usage.input_tokens, stopped.usage.requests) == (3 * 570, 3), "as the envelope says"
    assert 3 < stopped.usage.output_tokens < 150, "of a message that has just begun its stream counts one token"
    twice = read(
        tmp_path, "claude", (b"".join(line for line in messages for _ in range(2)), err), kind=EndKind.TIMED_OUT
    )
    assert twice.usage.input_tokens == 3 * 570, "a message's records repeat its usage"
    assert read(tmp_path, "claude", (out, err)).usage == usage(1710, 150, 3)
