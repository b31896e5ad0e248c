"""The group in this process, telling its story on standard error."""

import asyncio
import logging
import sys

from activities.settings.home import Home
from bridge.daemon.cluster import run_cluster
from bridge.daemon.locks import FileLock
from bridge.daemon.options import DaemonOptions


def run_foreground(home: Home, options: DaemonOptions, lock: FileLock | None = None) -> None:
    """Return after a stop; raise when the group cannot be started. `lock` is the daemon's, when it was handed over."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(run_cluster(home, options, lock))
