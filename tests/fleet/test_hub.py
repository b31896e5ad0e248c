"""The hub of a repository with a remote: away, and refusing, while an agent works."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fleet.machines import Fleet
from tests.waiting import wait_for

AGENT = """\
echo x >>{count}
echo 1 >a.txt
while [ ! -e {go} ]; do sleep 0.05; done
echo '{{"service_result": {{"decision": "implemented", "summary": "wrote a.txt"}}}}'
"""


def goes_away(bare: Path) -> Callable[[], object]:
    bare.rename(bare.with_name("away.git"))
    return lambda: bare.with_name("away.git").rename(bare)


def refuses(bare: Path) -> Callable[[], object]:
    hook = bare / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho nobody may push; exit 1\n")
    hook.chmod(0o755)
    return hook.unlink


@pytest.mark.long
@pytest.mark.ruling("Q3")
@pytest.mark.parametrize(
    ("breaks", "says"), [(goes_away, "cannot be reached"), (refuses, "refuses the service's work")]
)
def test_a_job_whose_work_cannot_be_pushed_says_so_and_ends_when_it_can(
    fleet: Fleet, breaks: Callable[[Path], Callable[[], object]], says: str
) -> None:
    one, bare = fleet.host("one"), fleet.hub()
    go, count = fleet.folder / "go", fleet.folder / "count"
    one("daemon", "start")
    one("repo", "add", "acme/shop", "--remote", str(bare))
    one.register("dev", one.program("dev", AGENT.format(go=go, count=count)))
    job = one.json("agent", "implement", "dev", "write a.txt", "--repo", "acme/shop")["job_id"]
    wait_for(count.exists, lambda: one("job", "show", job).stdout)
    mend = breaks(bare)
    go.touch()
    wait_for(lambda: says in one("job", "show", job).stdout, lambda: one("job", "show", job).stdout)
    mend()
    assert one.wait_until_ended(job)["state"] == "succeeded"
    assert count.read_text() == "x\n"
    refs = subprocess.check_output(["git", "-C", str(bare), "for-each-ref", "--format=%(refname)", "refs/service"])
    assert refs.decode().split() == [f"refs/service/{job}"]
