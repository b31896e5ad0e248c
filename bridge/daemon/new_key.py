"""A new seal key in the place of one that others could have read, or that a person has removed (ruling N1).

Nothing believes an old key beside the new one: whoever has read it could forge what is "old". So a key is replaced when
the daemon starts and nothing is under way that was sealed with it; until then `service doctor` tells of it. What stays
in Temporal for the time after, the schedules of pipelines, is sealed anew once everything runs.
"""

import asyncio
import logging
import math
from collections.abc import Callable

from activities.runs.regular_files import write_private
from activities.sealing import seal_key
from activities.settings.home import Home
from activities.store.over import over
from bridge.operations.service import Service
from workflows.model.errors import ServiceError

log = logging.getLogger(__name__)

LOOK_SECONDS, AGAIN_SECONDS = 0.5, 15.0


def turn(home: Home, *, alone: bool) -> None:
    """Replace the key if it must be and can be. `alone`: no other host has the same one."""
    if not home.store.exists() or not home.seal_key.exists():
        home.seal_key_open.unlink(missing_ok=True)
        write_private(home.seal_key_new, "")
        seal_key.ensure(home.root)
    elif home.seal_key_open.exists():
        if not alone or is_at_work(Service(home)):
            log.warning("the seal key was open to other accounts and is not replaced yet: service doctor")
            return
        write_private(home.seal_key_new, "")
        home.seal_key.unlink()
        seal_key.ensure(home.root)
        home.seal_key_open.unlink()
        log.warning("the seal key was open to other accounts: there is a new one")


def is_at_work(service: Service) -> bool:
    """A tree or a pipeline's run is under way, or may be opened again, under the key there is."""
    return over(service.store, math.inf).since is not None


async def seal_schedules(home: Home, running: Callable[[], bool]) -> None:
    """Once everything is `running`, put the schedules of pipelines again if the key was replaced."""
    from bridge.operations import pipelines

    while home.seal_key_new.exists():
        await asyncio.sleep(LOOK_SECONDS)
        if not running():
            continue
        try:
            await pipelines.schedule_again(Service(home))
            home.seal_key_new.unlink(missing_ok=True)
        except ServiceError as error:
            log.warning("the schedules of pipelines cannot be sealed with the new key yet: %s", error.message)
            await asyncio.sleep(AGAIN_SECONDS)


async def keep_closed(home: Home) -> None:
    """Look after the home for as long as this runs: what is opened to others meanwhile is closed."""
    while True:
        try:
            await asyncio.to_thread(home.ensure)
        except (OSError, ServiceError) as error:
            log.error("%s", error)
        await asyncio.sleep(AGAIN_SECONDS)
