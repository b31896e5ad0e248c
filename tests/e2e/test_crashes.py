"""kill -9 at the worst moments: the job finishes, and its command ran exactly once."""

import os
import signal

from tests.e2e.conftest import Installed

RESULT = """echo '{"service_result": {"decision": "approved", "summary": "survived"}}'\n"""


def kill(pid: int) -> None:
    assert pid
    os.kill(pid, signal.SIGKILL)


def test_the_worker_dies_while_a_job_waits_to_start(installed: Installed) -> None:
    installed.agent("scout", "echo ran >> $PROOF\n" + RESULT)
    installed("daemon", "start")
    os.kill(installed.pid("worker"), signal.SIGSTOP)  # it holds its polls but takes nothing: the job can only wait
    job = installed.json("agent", "ask", "scout", "look", "--repo", "acme/shop")["job_id"]
    assert installed.json("job", "show", job)["state"] == "queued"
    kill(installed.pid("worker"))
    shown = installed.wait_until_ended(job)
    assert (shown["state"], shown["summary"], installed.proof) == ("succeeded", "survived", "ran\n")


def test_the_server_dies_while_a_job_runs(installed: Installed) -> None:
    installed.agent("scout", "echo ran >> $PROOF; while [ ! -e $PROOF.go ]; do sleep 0.1; done\n" + RESULT)
    installed("daemon", "start")
    job = installed.json("agent", "ask", "scout", "look", "--repo", "acme/shop")["job_id"]
    installed.wait_for(lambda: installed.proof != "")
    before = installed.pid("server")
    kill(before)
    installed.wait_for(lambda: installed.pid("server") not in (0, before))
    (installed.tmp / "proof.go").touch()
    shown = installed.wait_until_ended(job)
    assert (shown["state"], shown["summary"], installed.proof) == ("succeeded", "survived", "ran\n")


def test_the_worker_dies_while_a_job_runs_and_the_next_one_takes_the_run_over(installed: Installed) -> None:
    installed.agent("scout", "echo ran >> $PROOF; while [ ! -e $PROOF.go ]; do sleep 0.1; done\n" + RESULT)
    installed("daemon", "start")
    job = installed.json("agent", "implement", "scout", "change", "--repo", "acme/shop")["job_id"]
    installed.wait_for(lambda: installed.proof != "")
    kill(installed.pid("worker"))
    (installed.tmp / "proof.go").touch()
    shown = installed.wait_until_ended(job)
    assert (shown["state"], shown["summary"], installed.proof) == ("succeeded", "survived", "ran\n")


def test_everything_stops_while_a_job_runs_and_starts_again(installed: Installed) -> None:
    installed.agent("scout", "echo ran >> $PROOF; while [ ! -e $PROOF.go ]; do sleep 0.1; done\n" + RESULT)
    installed("daemon", "start")
    job = installed.json("agent", "ask", "scout", "look", "--repo", "acme/shop")["job_id"]
    installed.wait_for(lambda: installed.proof != "")
    installed("daemon", "stop")
    (installed.tmp / "proof.go").touch()
    installed("daemon", "start")
    shown = installed.wait_until_ended(job)
    assert (shown["state"], shown["summary"], installed.proof) == ("succeeded", "survived", "ran\n")
