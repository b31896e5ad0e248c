"""A member of the daemon's group (`python -m cli.warm`) that runs the commands typed in this home."""

import sys
import time

from activities.settings.home import Home
from cli.warm.listening import until_the_first

AT_ONCE = "now"
_A_DAY = 86_400.0


def main() -> None:
    """Serve commands. If the home's disk has no sockets, only sleep: each command then runs in a process of its own."""
    home = Home.locate()
    try:
        if sys.argv[1:] != [AT_ONCE]:
            until_the_first(home)
        from cli.warm import server  # imports all that a command may need

        server.serve(home)
    except OSError as error:
        from cli.drawing.output import tell

        tell(f"cannot listen at {home.commands_socket}: {error}; commands are run without")
    while True:
        time.sleep(_A_DAY)


if __name__ == "__main__":
    main()
