"""The scripted model as a command, until it is interrupted."""

import argparse
import json
import signal
import sys

from tests.scripted_model.scenarios import BUILT_IN
from tests.scripted_model.server import ScriptedModel


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.scripted_model", description="A model that plays a script.")
    parser.add_argument("--port", type=int, default=0, help="0 is any free one")
    parser.add_argument("--list", action="store_true", help="print the scenarios")
    given = parser.parse_args()
    if given.list:
        sys.stdout.writelines(f"{name:16} {json.dumps(steps)[:120]}\n" for name, steps in sorted(BUILT_IN.items()))
        return
    with ScriptedModel(port=given.port) as model:
        sys.stdout.write(f"the scripted model is on {model.url()}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
