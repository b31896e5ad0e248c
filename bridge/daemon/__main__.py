"""The daemon's process, as `service daemon start` spawns it. Its arguments are the options and the inherited lock's
fd.
"""

import sys

from activities.settings.home import Home
from bridge.daemon.foreground import run_foreground
from bridge.daemon.options import DaemonOptions
from bridge.machine.locks import FileLock
from workflows.model.errors import ServiceError
from workflows.text.invisible import visible


def main(arguments: list[str]) -> None:
    """Run the daemon's processes, and exit with the error's exit code if that fails."""
    try:
        options = DaemonOptions.model_validate_json(arguments[0])
        run_foreground(Home.locate(), options, FileLock(int(arguments[1])) if arguments[1:] else None)
    except ServiceError as error:
        sys.stderr.write(visible(f"error: {error}\n"))
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(sys.argv[1:])
