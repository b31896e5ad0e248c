"""The account's identity on GitHub: fetched at start and hourly, so that our own comments are recognised (L5)."""

import asyncio
import time

from activities.github import api
from activities.github.client import DeclinedError, LimitedError
from activities.store.github import account
from bridge.github.session import Session

FRESH_SECONDS = 3600.0
REFUSED_SECONDS = 300.0


async def refresh_login(session: Session) -> None:
    """Fetch the account's login unless it is fresh. A refused account is left alone for a while, and people are
    notified.
    """
    known = await asyncio.to_thread(account.read, session.store)
    if known.login and time.time() - known.seen_at < FRESH_SECONDS:
        return
    try:
        found = await api.whoami(session.client)
    except DeclinedError as error:
        why = f"{account.REFUSED}: {error}"
        raise LimitedError(why, time.time() + REFUSED_SECONDS) from None
    kind = "app" if session.client.is_app else "user"
    await asyncio.to_thread(
        account.note, session.store, login=found.login, kind=kind, seen_at=time.time(), checks_refused=False
    )
