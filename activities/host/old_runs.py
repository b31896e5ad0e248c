"""Removal of the output of old runs, and of the sessions of trees that ended long ago (`[worker].keep_runs`)."""

import asyncio
import contextlib
import logging
import time

from sqlalchemy.exc import SQLAlchemyError

from activities.git.work_folder import delete_later
from activities.host.context import Context
from activities.runs import orphans
from activities.runs.run_folders import Key
from activities.store import attempt_rows, run_rows
from workflows.model.errors import ServiceError

log = logging.getLogger(__name__)

TIDY_SECONDS = 3600.0


async def keep_tidy(context: Context) -> None:
    """Remove old output now and every hour, while the worker lives; errors of a full or faulty disk are logged, and the
    next hour tries again.
    """
    while True:
        try:
            gone = await asyncio.to_thread(tidy, context)
            if gone:
                log.info("removed the output of %d old runs", gone)
        except (OSError, SQLAlchemyError, ServiceError) as error:
            log.warning("old runs cannot be removed: %s", error)
        await asyncio.sleep(TIDY_SECONDS)


def tidy(context: Context) -> int:
    """Remove the output of runs recorded longer ago than `[worker].keep_runs`, and the sessions of trees that ended
    longer ago than that; empty the trash.
    """

    before, gone = time.time() - context.settings.worker.keep_runs, 0

    def is_over(key: Key) -> bool:
        attempt = attempt_rows.get(context.store, *key)
        return attempt is not None and attempt.ended_at is not None and attempt.ended_at < before

    context.artifacts.hand_over()
    delete_later.delete(*run_rows.over(context.store, before).folders(context.home.programs))
    delete_later.empty(context.home.root / delete_later.FOLDER)
    for run_dir in orphans.old_runs(context.home.runs, is_over, before):
        with contextlib.suppress(OSError):
            orphans.discard_run(run_dir)
            gone += 1
    return gone
