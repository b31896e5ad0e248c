"""The console script: the daemon's warm process runs the command if there is one; else it runs here (ruling K7).

Every command pays for the imports before that decision, so there are next to none.
"""

import os
import sys


def run() -> None:
    """Run the typed command, and exit with its code."""
    try:
        if sys.argv[1:] == ["mcp"]:  # its clients wait a second at most
            from cli import mcp_stdio

            mcp_stdio.run()
        code = _handed_over()
        if code is not None:
            os._exit(code)
        from cli import main

        main.run()
    except KeyboardInterrupt:
        os._exit(130)


def _handed_over() -> int | None:
    """Return the exit code, or None if the command was not accepted and nothing was begun."""
    if sys.platform != "linux":
        return None
    from cli.warm import client

    return client.hand_over(sys.argv)
