"""The bridge as a member of the daemon; its arguments give the address."""

import logging
import sys

from activities.runs.service_process import importing, run

with importing():
    from bridge.http import process
    from bridge.operations.service import Service

announce = logging.getLogger("service").info

if __name__ == "__main__":
    run(lambda: process.serve(Service.locate("bridge"), sys.argv[1], allow_remote=False, announce=announce))
