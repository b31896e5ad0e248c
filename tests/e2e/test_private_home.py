"""A used home under a permissive umask: each file has restrictive permissions of its own (ruling N8)."""

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Installed
from tests.unboxed import NO_BOX

pytestmark = pytest.mark.ruling("N8")

RESULT = json.dumps({"service_result": {"decision": "implemented", "summary": "done", "artifact_body": {"a": "b"}}})
PIPELINE = "name: p\nrepo: acme/shop\nstages:\n  - {id: a, kind: shell, command: 'echo hello > made'}\n"
OTHERS = stat.S_IRWXO
GROUP = stat.S_IRWXG

OPEN_TO = {
    r"boxes(/etc-.*)?": GROUP | OTHERS,
    r"runs/[^/]+/(prompt(\.md)?|std(out|err)\.log)": GROUP,
    r"(worktrees|trash|checkouts)/[^/]+/.+": GROUP | OTHERS,
}
"""Permissions for other accounts, by path.

`boxes/etc-*`: copies of public files of /etc, which the account of agents needs when it makes its box.

`runs/`: a program reopens its streams, so its account's group may read them, if that is another account.

`worktrees/`, `checkouts/`, `trash/`: git sets the modes of files in work folders and in its directories. Each of these
folders has mode 0700; a work folder belongs to the account of agents.
"""


def open_ones(top: Path) -> Iterator[str]:
    """Yield paths that accounts can reach without need, with their modes."""
    for folder, folders, files in os.walk(top):
        for path in (Path(folder, name) for name in (*folders, *files)):
            found, place = path.lstat(), str(path.relative_to(top))
            if stat.S_ISLNK(found.st_mode):
                continue
            allowed = next((bits for pattern, bits in OPEN_TO.items() if re.fullmatch(pattern, place)), 0)
            if found.st_mode & (GROUP | OTHERS) & ~allowed:
                yield f"{place} {found.st_mode:o}"


def lived_in(service: Installed, tmp_path: Path, box: str) -> str:
    """Run a daemon, ended jobs and a running one, a pipeline, tokens, a session, a backup; return the running job."""
    works = f"cat > prompt; while [ -e held ]; do sleep 0.1; done; echo {shlex.quote(RESULT)}"
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (service.home / "config.toml").write_text(f"[runtimes.shell]\n{box}\n")
    service("daemon", "start")
    can = ("--capabilities", "ask,implement", "--autonomy", "workspace-write", "--repo", "acme/shop")
    service("agent", "add", "quick", "--runtime", "shell", "--command", f"sh -c {shlex.quote(works)}", *can)
    slow = f"sh -c {shlex.quote(f'touch held; {works}')}"
    service("agent", "add", "slow", "--runtime", "shell", "--command", slow, *can)
    service("agent", "implement", "quick", "a secret: ghp_" + "a1B2" * 9, "--repo", "acme/shop", "--wait")
    service("pipeline", "add", str(tmp_path / "p.yaml"))
    service("pipeline", "run", "p", "--wait")
    service("memory", "add", "key", "value")
    service("bridge", "token", "add", "ci", "--scope", "read")
    service("dashboard")
    service("doctor", "--json")
    service("backup", str(tmp_path / "copy"))
    job = str(service.json("agent", "implement", "slow", "do it", "--repo", "acme/shop")["job_id"])
    service.wait_for(lambda: list(service.home.glob("worktrees/*/held")))
    return job


@pytest.mark.parametrize("box", [NO_BOX, pytest.param("", marks=pytest.mark.long)])
def test_every_file_of_a_home_that_was_lived_in_is_closed_by_itself(
    installed: Installed, tmp_path: Path, box: str
) -> None:
    job = lived_in(installed, tmp_path, box)
    assert list(open_ones(installed.home)) == []
    assert list(open_ones(tmp_path / "copy")) == []
    installed("job", "kill", job, "--now")
    installed("daemon", "stop")
    assert list(open_ones(installed.home)) == []


@pytest.mark.long
@pytest.mark.ruling("N1")
def test_a_home_that_was_open_has_new_secrets_and_its_schedules_go_on(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"{PIPELINE}schedule: {{interval: 1m}}\n")
    installed("daemon", "start")
    installed("pipeline", "add", str(tmp_path / "p.yaml"))
    home = installed.seen.home
    token, key = home.bridge_token.read_text(), home.seal_key.read_bytes()
    installed("daemon", "stop")
    home.root.chmod(0o755)
    assert installed.json("daemon", "start")
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert home.bridge_token.read_text() != token
    assert home.seal_key.read_bytes() != key
    installed.wait_for(lambda: not home.seal_key_new.exists())
    assert "was open to other accounts" in installed("doctor").stdout
    installed.wait_for(lambda: any(run["state"] == "succeeded" for run in installed.json("pipeline", "runs")["runs"]))
