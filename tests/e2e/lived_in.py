"""A used home under a permissive umask, and what of it other accounts could reach (ruling N8)."""

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.conftest import Installed

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
            status, place = path.lstat(), str(path.relative_to(top))
            if stat.S_ISLNK(status.st_mode):
                continue
            allowed = next((bits for pattern, bits in OPEN_TO.items() if re.fullmatch(pattern, place)), 0)
            if status.st_mode & (GROUP | OTHERS) & ~allowed:
                yield f"{place} {status.st_mode:o}"


def lived_in(service: Installed, tmp_path: Path) -> str:
    """Make ended jobs and a running one, a pipeline, tokens, a session, a backup; return the running job."""
    works = f"cat > prompt; while [ -e held ]; do sleep 0.1; done; echo {shlex.quote(RESULT)}"
    (tmp_path / "p.yaml").write_text(PIPELINE)
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


def check_its_files(service: Installed, tmp_path: Path) -> None:
    """Live in a running service's home, stop it, and assert that each file has restrictive permissions of its own."""
    job = lived_in(service, tmp_path)
    assert list(open_ones(service.home)) == []
    assert list(open_ones(tmp_path / "copy")) == []
    service("job", "kill", job, "--now")
    service("daemon", "stop")
    assert list(open_ones(service.home)) == []
