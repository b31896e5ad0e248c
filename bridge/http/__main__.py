"""The bridge as a member of the daemon's group: told its address."""

import logging
import os
import sys

from bridge.http import process
from bridge.operations.service import Service
from workflows.model.errors import ServiceError


def main(arguments: list[str]) -> int:
    """Exit as the `service` command would."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        process.serve(Service.locate(), arguments[0], allow_remote=False, announce=logging.getLogger("service").info)
    except ServiceError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"try: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
