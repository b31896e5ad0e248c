"""A fork server whose supervisors are killed before they write anything."""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))

from activities.runs import fork_server

forked = os.fork


def fork() -> int:
    """Fork a child that dies at once; return in the parent alone."""
    if (pid := forked()) == 0:
        os._exit(9)
    return pid


if __name__ == "__main__":
    os.fork = fork
    fork_server.main()
