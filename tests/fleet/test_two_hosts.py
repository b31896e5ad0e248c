"""Two hosts on one cluster."""

import pytest

from tests.fleet.machines import Fleet, Machine, checkout

AGENT = """echo "$SERVICE_JOB_ID" >>"$PROOF"
echo '{"service_result": {"decision": "approved", "summary": "fine"}}'"""


def scout(machine: Machine, repo: str) -> None:
    machine("repo", "add", repo, str(checkout(machine)))
    program = machine.tmp / "scout.sh"
    program.write_text(AGENT)
    words = ("--runtime", "shell", "--command", f"sh {program}", "--repo", repo)
    machine("agent", "add", f"scout-{machine.name}", *words, "--capabilities", "ask", "--autonomy", "read-only")


@pytest.mark.ruling("engine:hosts", "Q2")
def test_each_host_runs_the_jobs_of_its_own_repository(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    for machine in (one, two):
        scout(machine, f"acme/{machine.name}")
        machine("daemon", "start")
    job = one.json("agent", "ask", "scout-two", "hello " * 1000, "--repo", "acme/two")["job_id"]
    assert two.wait_until_ended(job)["state"] == "succeeded"
    assert (len(two.proof.splitlines()), one.proof) == (1, "")
    assert [each["name"] for each in one.json("daemon", "status", "--all")["hosts"]] == ["one", "two"]
