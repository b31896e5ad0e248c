"""The daemon as a process: what `service daemon start` leaves running. Told its options, and the lock it inherits."""

import sys

from activities.settings.home import Home
from bridge.daemon.foreground import run_foreground
from bridge.daemon.options import DaemonOptions
from bridge.machine.locks import FileLock
from workflows.contract.visible import visible
from workflows.model.errors import ServiceError


def main(arguments: list[str]) -> None:
    """Exit as the `service` command would."""
    try:
        options = DaemonOptions.model_validate_json(arguments[0])
        run_foreground(Home.locate(), options, FileLock(int(arguments[1])) if arguments[1:] else None)
    except ServiceError as error:
        sys.stderr.write(visible(f"error: {error}\n"))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(sys.argv[1:])
