"""Replacing a seal key that others could have read, or that a person has removed (ruling N1).

No exposed key is accepted beside the new one: its readers could forge "old" data. So the daemon replaces all keys when
it starts and nothing that is sealed with them is running; until then `service doctor` reports it. The schedules of
pipelines and the GitHub desk, which stay in Temporal, are sealed again once everything runs.
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
    """Replace the key if it must be and can be. `alone`: no other host shares it."""
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
    """If the key was replaced, write the schedules of pipelines again and restart the desk, once all is `running`."""
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
    """Check the home's permissions again and again, and close whatever was opened to others."""
    while True:
        try:
            await asyncio.to_thread(home.ensure)
        except (OSError, ServiceError) as error:
            log.error("%s", error)
        await asyncio.sleep(AGAIN_SECONDS)
