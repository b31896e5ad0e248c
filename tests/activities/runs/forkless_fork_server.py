"""A fork server that can fork no process."""

import os
import sys
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))

from activities.runs import fork_server


def fork() -> NoReturn:
    """Fail as on a machine with too many processes."""
    raise BlockingIOError(11, "Resource temporarily unavailable")


if __name__ == "__main__":
    os.fork = fork
    fork_server.main()
