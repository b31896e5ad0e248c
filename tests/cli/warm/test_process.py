"""The context of a handed-over command equals that of a started one, in everything a command could query."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.warm.conftest import AS_TYPED, ROOT, Warm
from tests.waiting import wait_for

pytestmark = pytest.mark.ruling("K7")

WORDS = ["service", "é", "two words", ""]
PROBE = """
import json, os, signal, sys, time
def main():
    from activities.redaction.redact import redact_text
    streams = [sys.stdin, sys.stdout, sys.stderr]
    print(json.dumps({
        "words": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ), "umask": os.umask(0o22),
        "streams": [(s.encoding, s.errors, s.line_buffering, s.isatty(), s.fileno(), type(s.buffer).__name__)
                    for s in streams],
        "signals": {n: str(signal.getsignal(n)) for n in range(1, 32)},
        "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "zone": time.tzname, "given": sys.stdin.read(), "threads": len(os.listdir("/proc/self/task")),
        "hides": redact_text("it is s3cr3t-and-l0ng, and n4med-and-l0ng"),
        "again": [a is b for a, b in zip(streams, [sys.__stdin__, sys.__stdout__, sys.__stderr__])],
    }))
    return 7
import cli.main
cli.main.main = main
"""
"""A stand-in for every command."""
NOT_LISTED = {"ODD": "1", "ODD_TOKEN": "s3cr3t-and-l0ng", "NAMED": "n4med-and-l0ng", "EDITOR": "false"}
"""Variables of which only those named by the settings are taken over."""
SERVER = (
    "from cli.warm import server; from activities.settings.home import Home; "
    "server._warm_up = lambda: None; server.serve(Home.locate())"
)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.long
def test_it_is_as_one_that_was_started(tmp_path: Path, unbuffered: str) -> None:
    extra = {"TZ": "Asia/Tokyo", "LC_TIME": "ünï", "NO_COLOR": "1", "PYTHONUNBUFFERED": unbuffered} | NOT_LISTED
    typed = Warm(tmp_path / "home", tmp_path / "some where", extra)
    typed.home.mkdir(mode=0o700)
    (typed.home / "config.toml").write_text('[runtimes.shell]\nenv = ["NAMED"]\n')
    typed.folder.mkdir()
    elsewhere = typed.environment | {"TZ": "UTC", "LC_TIME": "other", "ONLY_THERE": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", PROBE + SERVER], env=elsewhere, stdin=subprocess.DEVNULL, cwd=ROOT
    ) as server:
        try:
            wait_for(lambda: typed.socket.exists() or server.poll() is not None)
            handed, started = (_told(typed, how) for how in (AS_TYPED, PROBE + "cli.main.run()"))
        finally:
            server.kill()
    seen, whole = handed.pop("environment"), started.pop("environment")
    hides, _ = handed.pop("hides"), started.pop("hides")
    assert handed == started
    assert seen.items() <= whole.items()
    assert {"TZ", "LC_TIME", "NO_COLOR", "PATH", "HOME", "SERVICE_HOME", "NAMED"} <= seen.keys()
    assert not {"ODD", "ODD_TOKEN", "EDITOR", "ONLY_THERE"} & seen.keys()
    assert hides == "it is [redacted], and [redacted]", "what is not taken over is secret all the same"
    assert (handed["zone"][0], handed["umask"], handed["given"]) == ("JST", 0o027, "given\r\n")
    assert handed["signals"]["1"] == str(signal.SIG_IGN)


def _told(typed: Warm, entry: str) -> dict[str, Any]:
    """Run the probe under `nohup`, with a umask of its own."""
    starts = "import os, signal, sys; signal.signal(1, signal.SIG_IGN); os.umask(0o27); sys.argv = {}; {}"
    with typed.begun(entry=starts.format(WORDS, "\n" + entry)) as process:
        out, err = process.communicate("given\r\n")
    assert (process.returncode, err) == (7, "")
    document: dict[str, Any] = json.loads(out)
    return document
