"""Views of running jobs, with and without a worker."""

import os
import signal
import subprocess
import sys

import pytest

from activities.runs.os_processes import with_mark
from activities.runs.supervised_run import mark_of
from tests.e2e.conftest import Installed

pytestmark = [pytest.mark.long, pytest.mark.ruling("engine:live")]

AGENT = """\
echo "reading with token ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"
while [ ! -e $PROOF.next ]; do sleep 0.1; done
echo "thinking hard"
while [ ! -e $PROOF.go ]; do sleep 0.1; done
echo '{"service_result": {"decision": "approved", "summary": "done"}}'
"""


def test_a_running_job_shows_what_its_agent_says_even_without_a_worker(installed: Installed) -> None:
    installed.agent("scout", AGENT)
    with (installed.home / "config.toml").open("a") as config:
        config.write("max_parallel = 1\n")
    installed("daemon", "start")
    ask = ("agent", "ask", "scout", "look", "--repo", "acme/shop")
    first = installed.json(*ask)["job_id"]
    installed.wait_for(lambda: "reading" in ((installed.json("job", "show", first)["live"] or {}).get("last_line", "")))
    second = installed.json(*ask)["job_id"]
    waiting = installed.json("job", "show", second)
    assert (waiting["state"], waiting["started_at"]) == ("queued", None)
    assert "waits for its host to start it" in installed("job", "show", second).stdout
    follow = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "job", "events", first, "--follow"],
        env=installed.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follow.stdout is not None
    assert any("prints: reading with token [redacted]" in line for line in follow.stdout)

    os.kill(installed.pid("worker"), signal.SIGSTOP)
    (installed.tmp / "proof.next").touch()
    installed.wait_for(lambda: "thinking hard" in installed("job", "show", first).stdout)
    shown = installed("job", "show", first).stdout
    assert "agent is  running; " in shown
    assert "ago:" in shown
    assert installed.json("job", "show", first)["live"]["stage"] == "running"

    assert any("thinking hard" in line for line in follow.stdout)

    os.kill(installed.pid("worker"), signal.SIGCONT)
    (installed.tmp / "proof.go").touch()
    assert installed.wait_until_ended(first)["live"] is None
    output, _ = follow.communicate(timeout=60)
    assert "thinking hard" not in output, "it is said once"
    assert "ghp_" not in output
    installed.wait_until_ended(second)


@pytest.mark.ruling("engine:runs", "engine:doctor")
@pytest.mark.skipif(sys.platform != "linux", reason="leftovers are found in /proc")
@pytest.mark.long
def test_what_runs_for_nobody_is_ended_at_the_start_and_shown(installed: Installed) -> None:
    """The run's record is lost, as after a restore of an older store."""
    run_dir = installed.home / "runs" / "job-0123456789ab.1"
    start = (
        "import asyncio, sys; from pathlib import Path; from activities.runs.supervised_run import RunRequest, run\n"
    )
    start += "asyncio.run(run(RunRequest(Path(sys.argv[1]), ('sleep', '600'), Path('/'), {'PATH': '/usr/bin:/bin'})))"
    caller = subprocess.Popen([sys.executable, "-c", start, str(run_dir)], env=installed.environment)
    installed.wait_for(lambda: with_mark(mark_of(run_dir)) != set())
    caller.kill()
    caller.wait()
    assert with_mark(mark_of(run_dir))
    installed("daemon", "start")
    assert with_mark(mark_of(run_dir)) == set()
    output = installed("doctor").stdout
    assert "left over" in output
    assert "job-0123456789ab.1" in output
    log = (installed.home / "logs" / "worker.log").read_text()
    assert "job-0123456789ab.1 goes on (processes: 1) and nobody waits for it" in log
