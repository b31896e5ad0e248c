"""Start a command as an unprivileged account that may use these paths: `as_account UID [PATH ...] -- COMMAND`."""

import os
import stat
import sys
from pathlib import Path

from activities.boxes import agent_mounts


def become(uid: int, shown: list[str]) -> None:
    """Cover the private folders around the shown paths, in this process's own mount namespace, and switch accounts."""
    around = {
        str(parent) for path in shown for parent in Path(path).parents if not parent.stat().st_mode & stat.S_IXOTH
    }
    covers = [path for path in around if not any(path.startswith(f"{other}/") for other in around)]
    below = [path for path in shown if any(path.startswith(f"{cover}/") for cover in covers)]
    agent_mounts.Layout(covers, {path: os.path.isdir(path) for path in below}).lay()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def account(uid: int, shown: list[str], command: list[str]) -> list[str]:
    """Return the command that root runs as that account."""
    return [sys.executable, "-m", "tests.e2e.as_account", str(uid), *shown, "--", *command]


if __name__ == "__main__":
    end = sys.argv.index("--")
    become(int(sys.argv[1]), sys.argv[2:end])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])
