"""Replacing a seal key that others could have read, or that a person has removed (ruling N1).

An exposed key must not stay valid beside the new one: whoever read it could forge "old" data. So the daemon replaces
all keys when it starts, provided that nothing sealed with them is running; until then `service doctor` reports the
exposure. Pipelines' schedules and the GitHub desk stay in Temporal; they are sealed with the new key once everything
runs.
"""

import asyncio
import logging
from collections.abc import Callable

from activities.runs.regular_files import write_private
from activities.sealing import seal_key
from activities.settings.home import Home
from activities.store.run_rows import under_way
from bridge.operations.home.seal_keys import renew
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

log = logging.getLogger(__name__)

LOOK_SECONDS, AGAIN_SECONDS = 0.5, 15.0


def turn(home: Home, *, alone: bool) -> None:
    """Replace the seal key if that is necessary and possible. `alone` is true if no other host shares the key."""
    if not home.seal_key.exists() or (alone and not home.store.exists()):
        home.seal_key_open.unlink(missing_ok=True)
        write_private(home.seal_key_new, "")
        seal_key.renew(home.root)
    elif home.seal_key_open.exists():
        service = Service(home)
        if not alone or under_way(service.store):
            log.warning("the seal key was open to other accounts and is not replaced yet: service doctor")
            return
        write_private(home.seal_key_new, "")
        renew(home, service.store)
        home.seal_key_open.unlink()
        log.warning("the seal key was open to other accounts: there is a new one")


async def seal_schedules(home: Home, running: Callable[[], bool]) -> None:
    """If the key was replaced, wait until the service is `running`, then write pipelines' schedules with the new key
    and restart the desk.
    """
    from bridge.operations.github import desk
    from bridge.operations.pipelines import definitions

    while home.seal_key_new.exists():
        await asyncio.sleep(LOOK_SECONDS)
        if not running():
            continue
        try:
            service = Service(home)
            await definitions.schedule_again(service)
            if service.settings.github.is_configured:
                await desk.renew(service)
            home.seal_key_new.unlink(missing_ok=True)
        except ServiceError as error:
            log.warning("schedules and the GitHub desk cannot be sealed with the new key yet: %s", error.message)
            await asyncio.sleep(AGAIN_SECONDS)


async def keep_closed(home: Home) -> None:
    """Check the home's permissions periodically, and withdraw access that others were given."""
    while True:
        try:
            await asyncio.to_thread(home.ensure)
        except (OSError, ServiceError) as error:
            log.error("%s", error)
        await asyncio.sleep(AGAIN_SECONDS)
