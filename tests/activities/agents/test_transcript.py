"""Transcripts: what programs printed as entries, read page by page in both directions, whatever they printed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.agents import claude, codex, kimi, shell, transcript
from activities.agents.entries import Entry, EntryKind, Read
from activities.agents.transcript import BLOCK, LINE_LIMIT, ProgramOutput, after, before, programs
from tests.activities.agents.recorded import STREAMS
from tests.secrets.redaction_table import TOKENS

READERS: dict[str, Read] = {"codex": codex.entries, "claude": claude.entries, "kimi": kimi.entries}
ALL = sorted(STREAMS.glob("*/*.stdout"))
LAST = 10**12
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEAx5ZbvNq3kYt\n" * 40 + "-----END RSA PRIVATE KEY-----\n"


def written(folder: Path, output: bytes, *, over: bool = True) -> tuple[ProgramOutput, ...]:
    """Return the programs of an attempt with one program, which printed this."""
    run_dir = folder / "job-0123456789ab.1"
    run_dir.mkdir(exist_ok=True)
    (run_dir / "stdout.log").write_bytes(output)
    return programs(run_dir, over=over)


def recorded(folder: Path, program: str, case: str) -> list[Entry]:
    outputs = written(folder, (STREAMS / program / f"{case}.stdout").read_bytes())
    return list(before(outputs, READERS[program], LAST, limit=100, longest=200).entries)


def in_short(entries: list[Entry]) -> list[tuple[str, str, str, bool]]:
    """Return each entry's kind, what it is about, the beginning of its text, and whether it failed."""
    about = [" ".join((each.tool, each.argument or " ".join(each.files))).strip() for each in entries]
    return [(each.kind.value, what, each.text[:23], each.failed) for each, what in zip(entries, about, strict=True)]


def test_codex(tmp_path: Path) -> None:
    assert in_short(recorded(tmp_path, "codex", "failing-command")) == [
        ("note", "", "session 01a1fadb-3c6a-7", False),
        ("tool", "shell ls /nonexistent", "", False),
        ("result", "shell ls /nonexistent", "ls: cannot access '/non", True),
        ("said", "", "done", False),
        ("usage", "", "the whole session", False),
    ]
    assert ("files", "patch <REPO>/hello.txt", "", False) in in_short(recorded(tmp_path, "codex", "fresh-ww"))


def test_claude(tmp_path: Path) -> None:
    entries = recorded(tmp_path, "claude", "stream-json")
    assert in_short(entries) == [
        ("note", "", "model claude-opus-5-5, ", False),
        ("tool", "Write <REPO>/hello.txt", "", False),
        ("result", "", "File created successful", False),
        ("tool", "Bash git status --short", "", False),
        ("result", "", "?? hello.txt", False),
        ("said", "", '```json\n{\n  "service_re', False),
        ("usage", "", "this run", False),
    ]
    assert entries[1].files == ("<REPO>/hello.txt",)
    assert entries[3].call == entries[4].call != entries[1].call
    assert entries[6].usage is not None
    assert entries[6].usage.total == 1860
    assert ("result", "", "This command requires a", True) in in_short(recorded(tmp_path, "claude", "refused"))


def test_kimi(tmp_path: Path) -> None:
    assert in_short(recorded(tmp_path, "kimi", "refused"))[:2] == [
        ("tool", "Bash python3 -c \"open('../made.txt','w').write('x')\"", "", False),
        ("result", "", "this job may edit files", True),
    ]
    echo = b'{"role":"assistant","content":"UserPromptSubmit hook\\nthe whole prompt"}\n'
    line = b'{"role":"assistant","content":"Hi."}'
    shown = before(written(tmp_path, echo + line), kimi.entries, LAST, limit=9, longest=200).entries
    assert [each.text for each in shown] == ["Hi."]


def test_a_shell_agent(tmp_path: Path) -> None:
    lines = b'one\ntwo\n{"type":"usage","input_tokens":7,"output_tokens":2}\n{"decision": "approved"}\n'
    shown = before(written(tmp_path, lines), shell.entries, LAST, limit=9, longest=200).entries
    assert [(each.kind, each.text) for each in shown] == [
        (EntryKind.PRINTED, "one\ntwo"),
        (EntryKind.USAGE, ""),
        (EntryKind.PRINTED, '{"decision": "approved"}'),
    ]


@given(limit=st.integers(1, 7), which=st.sampled_from(ALL))
def test_pages_in_both_directions_hold_every_entry_once(
    tmp_path_factory: pytest.TempPathFactory, limit: int, which: Path
) -> None:
    read = READERS[which.parent.name]
    outputs = written(tmp_path_factory.mktemp("pages"), which.read_bytes())
    whole = before(outputs, read, LAST, limit=1000, longest=200).entries
    assert [*_forwards(outputs, read, limit)] == [*whole]
    assert [*_backwards(outputs, read, limit)] == [*whole]


@given(
    text=st.lists(st.sampled_from([b"\n", b"\r\n", b"{", b'{"a":1}', b"word ", b"\xff\xfe", b"\x1b[31m", b"x" * 900])),
    limit=st.integers(1, 5),
)
def test_noise_is_read_whole_in_both_directions(
    tmp_path_factory: pytest.TempPathFactory, text: list[bytes], limit: int
) -> None:
    outputs = written(tmp_path_factory.mktemp("noise"), b"".join(text))
    assert [*_forwards(outputs, shell.entries, limit)] == [*_backwards(outputs, shell.entries, limit)]


def _forwards(outputs: tuple[ProgramOutput, ...], read: Read, limit: int) -> Iterator[Entry]:
    at = 0
    while (page := after(outputs, read, at, limit=limit, longest=200)).end > at:
        yield from page.entries
        at = page.end
    assert at == outputs[-1].end


def _backwards(outputs: tuple[ProgramOutput, ...], read: Read, limit: int) -> list[Entry]:
    at, entries = LAST, list[Entry]()
    while (page := before(outputs, read, at, limit=limit, longest=200)).begin < page.end:
        entries[:0] = page.entries
        at = page.begin
    assert at in (0, LAST)
    return entries


def test_half_a_line_waits_for_its_end_unless_nothing_more_comes(tmp_path: Path) -> None:
    whole, half = b'{"role":"assistant","content":"Hi."}\n', b'{"role":"assistant","content":"H'
    outputs = written(tmp_path, whole + half, over=False)
    for page in (
        after(outputs, kimi.entries, 0, limit=9, longest=200),
        before(outputs, kimi.entries, LAST, limit=9, longest=200),
    ):
        assert [each.text for each in page.entries] == ["Hi."]
        assert page.end == len(whole)
    outputs = written(tmp_path, whole + half + b'o!"}\n', over=False)
    page = after(outputs, kimi.entries, page.end, limit=9, longest=200)
    assert [each.text for each in page.entries] == ["Ho!"]
    outputs = written(tmp_path, whole + half)
    assert before(outputs, kimi.entries, LAST, limit=1, longest=200).entries[0].text == half.decode()


def test_an_offset_within_a_line_means_the_line(tmp_path: Path) -> None:
    token = TOKENS["GitHub personal"]
    outputs = written(tmp_path, f"first\nthe token {token} is here\nlast".encode())
    for offset in range(6, 30 + len(token), 5):
        assert token[-8:] not in str(after(outputs, shell.entries, offset, limit=1, longest=200))
    assert before(outputs, shell.entries, 20, limit=9, longest=200).entries[0].text == "first"


def test_further_programs_of_an_attempt_follow_the_first_one(tmp_path: Path) -> None:
    written(tmp_path, b"first program\n")
    run_dir, again = tmp_path / "job-0123456789ab.1", tmp_path / "job-0123456789ab.1.repair"
    again.mkdir()
    (again / "stdout.log").write_bytes(b"second program\n")
    outputs = (
        ProgramOutput(run_dir / "stdout.log", 0, 14, closed=True),
        ProgramOutput(again / "stdout.log", 14, 29, closed=True, why="asked to correct its result"),
    )
    page = before(outputs, shell.entries, LAST, limit=9, longest=200)
    assert [each.text for each in page.entries] == [
        "first program",
        "The program was asked to correct its result.",
        "second program",
    ]
    assert [*_forwards(outputs, shell.entries, 1)] == [*page.entries]
    assert [*_backwards(outputs, shell.entries, 1)] == [*page.entries]


@pytest.mark.ruling("A12")
@pytest.mark.parametrize("ahead", range(0, BLOCK + 200, 911))
def test_a_key_that_is_spread_over_blocks_and_pages_is_not_shown(tmp_path: Path, ahead: int) -> None:
    outputs = written(tmp_path, b"word\n" * (ahead // 5) + KEY.encode() + b"more words\n" * 400)
    for limit in (1, 50):
        assert "MIIEowIBAAKCAQEAx5ZbvNq3kYt" not in str([*_forwards(outputs, shell.entries, limit)])


@pytest.mark.ruling("A12")
@pytest.mark.parametrize("text", [KEY * 20, "some words " * 3000 + TOKENS["GitHub personal"] + " and more" * 3000])
def test_secrets_in_texts_that_are_cut_are_not_shown(tmp_path: Path, text: str) -> None:
    for shift in range(0, 300, 97):
        line = json.dumps({"role": "tool", "tool_call_id": "c", "content": "x " * shift + text})
        for longest in (200, 33_000):
            [entry] = before(written(tmp_path, line.encode()), kimi.entries, LAST, limit=9, longest=longest).entries
            assert "MIIEowIBAAKCAQEAx5ZbvNq3kYt" not in entry.text
            assert TOKENS["GitHub personal"][-12:] not in entry.text
            assert len(entry.text) < longest + 100


@pytest.mark.ruling("A12")
def test_arguments_and_names_have_no_secrets(tmp_path: Path) -> None:
    token = TOKENS["GitHub personal"]
    for shift in range(250, 310, 7):
        call = {
            "id": token,
            "function": {"name": token, "arguments": json.dumps({"command": "x" * shift + f" {token}"})},
        }
        line = json.dumps({"role": "assistant", "tool_calls": [call]})
        [entry] = before(written(tmp_path, line.encode()), kimi.entries, LAST, limit=9, longest=200).entries
        assert token[:12] not in str(entry)


def test_hostile_output_is_text(tmp_path: Path) -> None:
    lines = [
        b'{"a":' * 100_000,  # too deep
        b'{"n": ' + b"9" * 10_000 + b"}",  # a number too long
        b"\xff\xfe invalid",
        b"\x1b]0;title\x07\x1b[31mred\x1b[0m 10%\r 20%\r100%",
        b'{"role":"assistant","content":["no text"],"tool_calls":{"0":1}}',
        b'{"role":"tool","content":{"x":[]}}',
        b'{"role":"assistant","tool_calls":[{"function":{"name":7,"arguments":"[1"}},null,3]}',
        b'{"role":"assistant","content":"at last"}',
    ]
    shown = before(written(tmp_path, b"\n".join(lines)), kimi.entries, LAST, limit=99, longest=200).entries
    printed = " ".join(each.text for each in shown)
    for words in ("\ufffd\ufffd invalid", "100%", "at last"):
        assert words in printed
    assert "\x1b" not in printed
    assert "20%" not in printed
    for program in (codex.entries, claude.entries):
        for record in ({"type": kind, "item": item, "message": item} for kind in KINDS for item in ITEMS):
            list(program(record) or ())


KINDS = ("assistant", "user", "result", "system", "item.started", "item.completed", "turn.completed", "error")
ITEMS: tuple[object, ...] = (
    None,
    7,
    [],
    {},
    {"type": "file_change", "changes": {"a": 1}},
    {"type": "file_change", "changes": [3, {"path": 1}]},
    {"type": "mcp_tool_call", "result": {"content": [1, {"text": "x"}]}, "arguments": [1]},
    {"type": "command_execution", "command": "/bin/bash -lc 'unclosed", "exit_code": "x", "aggregated_output": 1},
    {"content": [{"type": "tool_use", "input": 3}, {"type": "tool_result", "content": [None]}, 5, {"type": ["x"]}]},
)


def test_a_line_that_is_too_long_is_mentioned(tmp_path: Path) -> None:
    outputs = written(tmp_path, b"before\n" + b"x" * (LINE_LIMIT + 1) + b"\nafter\n")
    texts = [each.text for each in _forwards(outputs, shell.entries, 1)]
    assert texts == ["before", f"a line of {LINE_LIMIT + 1} bytes is not shown; the raw output has it", "after"]
    assert [each.text for each in _backwards(outputs, shell.entries, 1)] == texts


class _Counting:
    """A file that counts the bytes read of it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.bytes = file, 0

    def read(self, size: int = -1) -> bytes:
        return self._counted(self._file.read(size))

    def readline(self, size: int = -1) -> bytes:
        return self._counted(self._file.readline(size))

    def seek(self, at: int) -> int:
        return self._file.seek(at)

    def __enter__(self) -> "_Counting":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _counted(self, piece: bytes) -> bytes:
        self.bytes += len(piece)
        return piece


def test_a_transcript_of_fifty_megabytes_opens_by_its_end_and_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b'{"role":"tool","tool_call_id":"c","content":"%s"}\n' % (b"words of a result " * 20)
    file, counted = tmp_path / "job-0123456789ab.1" / "stdout.log", list[_Counting]()
    file.parent.mkdir()
    with file.open("wb") as made:
        os.truncate(file, 50_000_000)
        made.seek(50_000_000)
        made.write(b"\n" + line * 1000)

    def counting(path: Path) -> BinaryIO:
        counted.append(_Counting(path.open("rb")))
        return cast("BinaryIO", counted[-1])

    monkeypatch.setattr(transcript, "open_to_read", counting)
    page = before(programs(file.parent, over=False), kimi.entries, LAST, limit=200, longest=1000)
    assert len(page.entries) == 200
    assert sum(each.bytes for each in counted) < 3 * 200 * len(line) + 2 * transcript.CHUNK
    with file.open("ab") as more:
        more.write(line)
    counted.clear()
    page = after(programs(file.parent, over=False), kimi.entries, page.end, limit=200, longest=1000)
    assert len(page.entries) == 1
    assert sum(each.bytes for each in counted) < 3 * len(line) + transcript.CHUNK
