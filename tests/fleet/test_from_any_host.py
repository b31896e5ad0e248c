"""A job that runs on one host, looked at and merged from another."""

import subprocess
from functools import partial

import pytest

from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, ended_well
from tests.waiting import wait_for

AGENT = """\
echo working on it
echo 1 >a.txt
while [ ! -e {go} ]; do sleep 0.05; done
echo '{{"service_result": {{"decision": "implemented", "summary": "wrote a.txt"}}}}'
"""


def url(machine: Machine) -> str:
    return f'[bridge]\nurl = "http://127.0.0.1:{machine.extra["SERVICE_BRIDGE_PORT"]}"\n'


@pytest.mark.long
@pytest.mark.ruling("Q3.looks", "Q3.work")
def test_a_running_job_is_seen_and_its_work_merged_from_another_host(fleet: Fleet) -> None:
    one, two, go = fleet.host("one"), fleet.host("two"), fleet.folder / "go"
    one.configure(url(one))
    one("daemon", "start")
    bare = fleet.hub()
    two("repo", "add", "acme/shop", "--remote", str(bare))
    two.register("dev", two.program("dev", AGENT.format(go=go)))
    job = one.json("agent", "implement", "dev", "write a.txt", "--repo", "acme/shop")["job_id"]
    wait_for(lambda: "working on it" in two.run("job", "log", job).stdout, lambda: two("job", "show", job).stdout)
    assert "write a.txt" in two("job", "prompt", job).stdout
    assert "+1\n" in two("job", "diff", job).stdout
    go.touch()
    assert one.wait_until_ended(job)["state"] == "succeeded"
    assert "now (fast-forwarded)" in two("job", "merge", job, "--into-mine").stdout
    assert subprocess.check_output(["git", "-C", str(bare), "show", "main:a.txt"]) == b"1\n"
    assert [leg["state"] for leg in one.json("job", "branches", job)["legs"]] == ["merged"]
    one("daemon", "stop")
    assert f"ssh one service job log {job}" in two("job", "log", job, code=5).stderr


@pytest.mark.long
@pytest.mark.ruling("Q3.looks", "Q3.work")
def test_the_work_of_legs_on_two_hosts_is_seen_and_merged_from_each(fleet: Fleet) -> None:
    hosts = one, two = fleet.host("one"), fleet.host("two")
    for machine in hosts:
        machine.configure(url(machine), labels=f'["is-{machine.name}"]')
    play = Play.on(fleet, *hosts)
    one("repo", "add", "acme/shop", "--remote", str(fleet.hub()))
    for name, machine in (("a", one), ("b", two)):
        play.agent(one, f"dev-{name}", "acme/shop", "--require", f"is-{machine.name}")
    legs = [{"id": name, "agent": f"dev-{name}", "action": "implement", "prompt": name} for name in ("a", "b")]
    wrote = {"decision": "implemented", "wait": "go"}
    play.answers(none={"delegations": legs}, a=wrote | {"write": {"a.txt": "a"}}, b=wrote | {"write": {"b.txt": "b"}})
    for machine in hosts:
        machine("daemon", "start")
    root = one.json("agent", "ask", "dev-a", "do both", "--repo", "acme/shop")["job_id"]
    play.wait_for("begin", 3)
    assert (play.places("a"), play.places("b")) == (["one"], ["two"])
    for machine in hosts:
        for name, leg in (("a", f"{root}.1"), ("b", f"{root}.2")):
            wait_for(partial(_shows, machine, leg, f"+{name}"), play.state)
    play.go()
    ended_well(play, one, [root], jobs=4)
    one("job", "merge", f"{root}.1")
    two("job", "merge", f"{root}.2")
    diffs = [machine("job", "diff", root, "--tree").stdout for machine in hosts]
    assert diffs[0] == diffs[1]
    assert "now (fast-forwarded)" in one("job", "merge", root, "--into-mine").stdout
    shown = subprocess.check_output(["git", "-C", str(fleet.folder / "hub.git"), "ls-tree", "--name-only", "main"])
    assert shown.split() == [b"a.txt", b"b.txt"]
    two("job", "drop", root)
    assert [leg["exists"] for leg in one.json("job", "branches", root)["legs"]] == [False, False]


def _shows(machine: Machine, job_id: str, line: str) -> bool:
    return line in machine.run("job", "diff", job_id).stdout
