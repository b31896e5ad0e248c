"""`service job log`: the transcript of a job, by its end, whole, raw, and as it grows."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from activities.runs import output_times
from activities.settings.home import Home
from activities.store import queries, schema
from bridge.operations.service import Service
from cli import transcript
from cli.main import main
from tests.activities.agents.recorded import STREAMS
from tests.bridge import seeds
from tests.secrets.redaction_table import TOKENS
from tests.waiting import wait_for
from workflows.model.states import JobState

JOB = f"{seeds.ROOT}.1"
TOKEN = TOKENS["GitHub personal"]
ENDED: dict[str, Any] = {"state": JobState.SUCCEEDED, "ended_at": 2.0}


@pytest.fixture
def service(home: Home) -> Service:
    return Service(home)


def attempt(service: Service, number: int = 1, output: str = "", **job: Any) -> Path:
    """Seed an attempt of the job, and return the file of its output."""
    seeds.write(service, seeds.task(), seeds.job(seeds.ROOT), seeds.job(JOB, **{"revision": number, **job}))
    folder = service.home.runs / f"{JOB}.{number}"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text(output)
    row = {"job_id": JOB, "attempt": number, "host": service.settings.host, "run_dir": str(folder), "started_at": 1}
    queries.insert_new(service.store, schema.attempts, row)
    return folder / "stdout.log"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["job", "log", JOB, *words]) == 0
    return capsys.readouterr().out


def test_a_transcript_is_printed_entry_by_entry(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    attempt(service, output=(STREAMS / "claude" / "refused.stdout").read_text(), runtime="runtime_b")
    lines = printed(capsys).splitlines()
    assert "tool: Bash python3 -c \"open('../made.txt','w').write('x')\"" in lines
    assert "failed: This command requires approval" in lines
    assert lines[-1].startswith("tokens: ")


def test_a_result_is_shortened_and_lines_of_the_agent_are_prefixed(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": "\n".join(f"line {n}" for n in range(30))}
    attempt(service, output=json.dumps(result) + "\nerror: forged\n", runtime="runtime_c")
    text = printed(capsys)
    assert "result:\n  | line 0\n" in text
    assert "  | line 9\n    20 more lines\n" in text
    assert "\n  | error: forged\n" in text


def test_entries_begin_with_their_time_of_day_where_it_was_recorded(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = ({"role": "assistant", "content": f"step {n}"} for n in range(2))
    output = attempt(service, output="".join(json.dumps(each) + "\n" for each in entries), runtime="runtime_c")
    output_times.note(output)
    clock = time.strftime("%H:%M:%S", time.localtime(output.stat().st_mtime))
    assert printed(capsys) == f"{clock} said: step 0\n{clock} said: step 1\n"


def test_the_end_is_shown_and_all_on_demand(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    entries = ({"role": "assistant", "content": f"step {n}"} for n in range(450))
    attempt(service, output="".join(json.dumps(each) + "\n" for each in entries), runtime="runtime_c")
    assert main(["job", "log", JOB, "--tail", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.err == f"earlier entries: service job log {JOB} --all\n"
    assert shown.out == "said: step 448\nsaid: step 449\n"
    assert printed(capsys, "--all") == "".join(f"said: step {n}\n" for n in range(450))
    page = json.loads(printed(capsys, "--json", "--tail", "3"))
    assert [each["text"] for each in page["entries"]] == ["step 447", "step 448", "step 449"]
    assert page["earlier_cursor"] == page["entries"][0]["at"]
    lines = printed(capsys, "--json", "--all").splitlines()
    assert [json.loads(line)["text"] for line in lines] == [f"step {n}" for n in range(450)]


@pytest.mark.ruling("A12")
def test_the_raw_output_is_handed_over_byte_by_byte_but_for_secrets(
    service: Service, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = attempt(service, **ENDED)
    file.write_bytes(b"\xff\x00 \x1b[31m\r\n" + f"a {TOKEN}".encode())
    assert main(["job", "log", JOB, "--raw"]) == 0
    assert capfdbinary.readouterr().out == b"\xff\x00 \x1b[31m\r\na [redacted]"


def test_a_running_job_is_followed_over_its_attempts_to_its_end(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "INTERVAL", 0.01)
    running: dict[str, Any] = {"state": JobState.RUNNING, "ended_at": None}
    file = attempt(service, output="first\nhal", **running)
    codes = list[int]()
    thread = threading.Thread(target=lambda: codes.append(main(["job", "log", JOB, "--follow"])), daemon=True)
    thread.start()
    seen = ""

    def shown(words: str) -> bool:
        nonlocal seen
        seen += capsys.readouterr().out
        return words in seen

    wait_for(lambda: shown("first"))
    assert "hal" not in seen
    with file.open("a") as more:
        more.write("f\n")
    wait_for(lambda: shown("half"))
    attempt(service, 2, "second attempt\n", **running)
    wait_for(lambda: shown("second attempt"))
    seeds.write(service, seeds.job(JOB, revision=9, **ENDED))
    thread.join(10)
    assert codes == [0]
    assert seen.count("first") == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([JOB, "--attempt", "3"], 4, f"{JOB} has no attempt 3; its attempts: 1"),
        (["job-ffffffffffff"], 4, "no job job-ffffffffffff"),
        ([JOB, "--raw", "--json"], 2, "--raw and --json exclude each other"),
        ([JOB, "--tail", "0"], 2, "Invalid value"),
    ],
)
def test_what_cannot_be_shown_says_why(
    service: Service, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    attempt(service)
    assert main(["job", "log", *words]) == code
    assert says in capsys.readouterr().err


def test_nothing_yet_and_nothing_kept_are_said(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    file = attempt(service, **ENDED)
    assert main(["job", "log", JOB]) == 0
    assert capsys.readouterr().err == "attempt 1 has printed nothing\n"
    file.unlink()
    file.parent.rmdir()
    assert main(["job", "log", JOB]) == 4
    assert "the output of attempt 1 is not kept any more" in capsys.readouterr().err
