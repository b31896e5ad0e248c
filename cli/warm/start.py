"""The console script. The daemon's warm process runs the command where there is one; else it is run here (ruling K7).

Whatever this imports before it knows is paid by every command, so it is next to nothing.
"""

import os
import sys


def run() -> None:
    """Run the command that was typed, and leave with its exit code."""
    try:
        code = _handed_over()
        if code is not None:
            os._exit(code)
        from cli.main import run as run_here

        run_here()
    except KeyboardInterrupt:
        os._exit(130)


def _handed_over() -> int | None:
    """None when nobody took it: then nothing of it was begun."""
    if sys.platform != "linux":
        return None
    from cli.warm import client

    return client.hand_over(sys.argv)
