"""The GitHub process as a member of the daemon's group."""

import asyncio

from activities.runs.service_process import importing, run

with importing():
    from bridge.github import desk
    from bridge.operations.service import Service

if __name__ == "__main__":
    run(lambda: asyncio.run(desk.serve(Service.locate("github"))), quiet=("httpx",))
