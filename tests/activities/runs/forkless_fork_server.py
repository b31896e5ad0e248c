"""The fork server where no process is to be had."""

import os
import sys
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))

from activities.runs import fork_server


def fork() -> NoReturn:
    """As on a machine that has too many processes."""
    raise BlockingIOError(11, "Resource temporarily unavailable")


if __name__ == "__main__":
    os.fork = fork
    fork_server.main()
