"""The console script: the command runs in the daemon's warm process if there is one, else here (ruling K7).

Every command pays for imports before that decision, so this module has almost none.
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
    """Run the command in the warm process, and return its exit code; None if it was not accepted and so did not
    begin.
    """
    if sys.platform != "linux":
        return None
    from cli.warm import client

    return client.hand_over(sys.argv)
