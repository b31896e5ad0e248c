"""The service on an external server and database, from the first refusal to a job that ran."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.daemon.server import find_program
from bridge.machine.ports import LOOPBACK, choose_port, is_free
from tests.activities.store.conftest import emptied, postgres
from tests.e2e.conftest import Installed, set_up
from tests.unboxed import shell
from tests.waiting import PATIENCE, wait_for

__all__ = ["postgres"]

AGENT = """echo '{"service_result": {"decision": "approved", "summary": "fine"}}'"""


@pytest.fixture
def address() -> Iterator[str]:
    """Start a plain Temporal server, without our set-up."""
    port = choose_port(0, "Temporal").port
    command = (str(find_program()), "server", "start-dev", "--headless", "--port", str(port), "--log-level", "error")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(lambda: not is_free(port), server.poll)
            yield f"{LOOPBACK}:{port}"
        finally:
            server.kill()


@pytest.fixture
def service(tmp_path: Path, address: str, postgres: str) -> Iterator[Installed]:
    """Create a home whose settings name both; the host has a name of its own."""
    emptied(postgres)
    there = set_up(tmp_path)
    server = f'[temporal]\naddress = "{address}"\nnamespace = "team"\n'
    (there.home / "config.toml").write_text(
        shell() + f'{server}[store]\nurl = "{postgres}"\n[worker]\nhost = "web-1"\n'
    )
    try:
        yield there
    finally:
        there("daemon", "stop")


@pytest.mark.ruling("engine:cluster", "engine:hosts")
@pytest.mark.long
def test_what_lacks_is_said_then_made_and_then_trees_run_and_wait_for_their_host(
    service: Installed, address: str
) -> None:
    lacking = f"the namespace team does not exist at {address}"
    refused = service("daemon", "start", code=5)
    assert refused.stderr == f"error: temporal: {lacking}\ntry: service cluster init\n"
    assert lacking in service("doctor", code=1).stdout
    service("repo", "add", "acme/shop", str(service.repo))
    program = service.tmp / "scout.sh"
    program.write_text(AGENT)
    words = ("--runtime", "shell", "--command", f"sh {program}", "--repo", "acme/shop")
    service("agent", "add", "scout", *words, "--capabilities", "ask", "--autonomy", "read-only")
    ask = ("agent", "ask", "scout", "hello", "--repo", "acme/shop")
    assert service(*ask, code=5).stderr == f"error: {lacking}\ntry: service cluster init\n"
    assert service.json("job", "list") == [], "nothing was recorded"
    assert "created the namespace team" in service("cluster", "init").stdout
    assert "existed" in service("cluster", "init").stdout
    service("daemon", "start")
    assert "has the namespace team" in service("doctor").stdout
    assert "fine" in service(*ask, "--wait").stdout
    [host] = service.json("daemon", "status", "--all")["hosts"]
    assert (host["name"], host["slots"], host["has_worker"]) == ("web-1", 8, True)
    service("daemon", "stop")
    job = service.json(*ask)["job_id"]
    shown = service.json("job", "show", job)
    assert shown["reason"].startswith("its host web-1 has no worker: it was stopped at ")
    assert shown["next"] == "on web-1: service daemon start"
    service("daemon", "start")
    service.wait_until_ended(job)


@pytest.mark.ruling("engine:cluster")
def test_a_worker_whose_server_lost_its_namespace_says_so_in_a_sentence(service: Installed) -> None:
    done = subprocess.run(
        ["python", "-m", "activities"],
        capture_output=True,
        text=True,
        env=service.environment,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1] == "try: service cluster init"
    assert "Traceback" not in done.stderr
