"""Streams that are full, closed, broken or ASCII, Ctrl-C, and unexpected errors: never a traceback (K6)."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.settings.home import Home
from cli.drawing.output import remember_words
from cli.invocation.exit_codes import INTERRUPTED
from cli.invocation.faults import BUG, answer
from cli.main import run_to_code
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.ruling("K6")
ROOT = Path(__file__).parents[2]
SERVICE = "from cli.warm.start import run; run()"


def service(words: str, shell: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, with a shell's redirections."""
    command = [sys.executable, "-c", SERVICE, *words.split()]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        ["bash", "-c", f'exec "$@" {shell}', "bash", *command],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("words", ["job list", "job list --json", "--version", "--help", "job list --help"])
@pytest.mark.parametrize(("shell", "why"), [(">/dev/full", "No space left"), (">&-", "standard output is closed")])
def test_what_cannot_be_printed_is_an_error(home: Home, words: str, shell: str, why: str) -> None:
    done = service(words, shell)
    assert done.returncode == 1
    assert why in (json.loads(done.stderr)["error"] if "--json" in words else done.stderr)
    assert done.stderr.count("\n") <= 2


def test_an_order_that_prints_nothing_needs_no_output(home: Home) -> None:
    assert service("job show x", ">&-").returncode == 2
    assert service("job show x", ">/dev/full 2>/dev/full").returncode == 2
    assert service("job show x", "2>&-").returncode == 2
    assert service("job list", "<&- 2>&-").returncode == 0


def test_where_a_bridge_listens_is_said_at_once_to_a_file_too(home: Home, tmp_path: Path) -> None:
    """The bridge runs until a signal, and its starter waits for the address."""
    words = [sys.executable, "-c", SERVICE, "bridge", "serve", "--addr", "127.0.0.1:0"]
    with (tmp_path / "said").open("w") as file, subprocess.Popen(words, stdout=file, cwd=ROOT) as bridge:
        try:
            wait_for((tmp_path / "said").read_text, bridge.poll)
            assert (tmp_path / "said").read_text().endswith(f"token: {home.bridge_token}\n")
        finally:
            bridge.kill()


def test_a_closed_input_is_an_empty_one(home: Home) -> None:
    done = service("memory add k -", "<&-")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: the content is empty")


def test_an_input_that_is_no_text_is_an_error(home: Home, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for words in ("memory add k -", "agent ask scout - --repo acme/shop", "orchestrate verifier - --repo acme/shop"):
        done = service(words, f"<{tmp_path / 'bytes'}", PYTHONIOENCODING="utf-8")
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: standard input is not UTF-8 text")


def test_a_reader_that_goes_away_is_no_fault(home: Home) -> None:
    for words in ("job list --help", "config show --json", "--help"):
        assert service(words, "| true").stderr == ""


def test_an_ascii_terminal_shows_the_rest_as_escapes(home: Home) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = service("memory add straße größe", **ascii_only)
    assert done.returncode == 0, done.stderr
    shown = service("memory list", **ascii_only)
    assert r"stra\xdfe" in shown.stdout
    for words in ("memory list --json", "job show jöb --json"):
        done = service(words, **ascii_only)
        text = done.stdout + done.stderr
        assert text.isascii()
        value = json.loads(text)
        assert (value[0]["key"] if isinstance(value, list) else value["error"]).count("ß") + str(value).count("ö")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_ctrl_c_ends_it_without_a_word(home: Home, tmp_path: Path, as_json: list[str]) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    command = [sys.executable, "-c", SERVICE, "result", "check", str(pipe), *as_json]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=-1, text=True) as process:
        wait_for(lambda: b"wait_for_partner" in wchan(process.pid), "it opens the pipe")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED
    assert err == ""


def wchan(pid: int) -> bytes:
    return Path(f"/proc/{pid}/wchan").read_bytes()


class TestFaults:
    def fail(self, monkeypatch: pytest.MonkeyPatch, fault: Callable[[], Exception], *more: str) -> int:
        def broken() -> int:
            remember_words(["job", "list", *more])
            raise fault()

        monkeypatch.setattr("cli.main.main", broken)
        return run_to_code()

    def test_a_bug_says_so_and_where_the_details_are(
        self, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.fail(monkeypatch, lambda: KeyError("x\x1b[2J")) == 1
        log = home.logs / "faults.log"
        errors = capsys.readouterr().err.splitlines()
        assert errors == [
            f"error: {BUG}: KeyError: 'x\\x1b[2J'; the details are in {log}",
            "try: service doctor",
        ]
        assert "in broken" in log.read_text()
        assert log.stat().st_mode & 0o077 == 0

    def test_as_json(self, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.fail(monkeypatch, lambda: ValueError("y"), "--json") == 1
        view = json.loads(capsys.readouterr().err)
        assert (view["code"], view["hint"]) == ("fault", "service doctor")

    def test_no_secret_is_told(
        self, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        secret = "ghp_" + "a1B2" * 9
        self.fail(monkeypatch, lambda: ValueError(f"token {secret}"))
        assert secret not in capsys.readouterr().err + (home.logs / "faults.log").read_text()

    def test_where_there_can_be_no_home_the_details_go_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("SERVICE_HOME", "/proc/none")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        assert self.fail(monkeypatch, lambda: ValueError("z")) == 1
        assert f"the details are in {tmp_path}/service-fault-" in capsys.readouterr().err

    def test_a_machine_that_refuses_is_no_fault_of_ours(self, capsys: pytest.CaptureFixture[str]) -> None:
        remember_words([])
        assert answer(OSError(28, "No space left on device", "/full/x")) == 1
        errors = capsys.readouterr().err
        assert errors.startswith("error: this machine refused it: No space left on device: /full/x\n")
