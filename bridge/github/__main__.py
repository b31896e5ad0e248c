"""The GitHub process as a member of the daemon's group."""

import asyncio
import logging
import os
import sys

from bridge.github import process
from bridge.operations.service import Service
from workflows.model.errors import ServiceError


def main() -> int:
    """Exit as the `service` command would."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        asyncio.run(process.serve(Service.locate()))
    except ServiceError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"try: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
