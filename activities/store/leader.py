"""The election of one process, among those of all hosts, that does a periodic chore for the whole cluster (ruling
Q7).
"""

from enum import IntEnum

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

IDLE_SECONDS = 60.0
"""The idle timeout of a leader's session: PostgreSQL ends the session, and another process becomes the leader."""

_LOCKS = 7233
"""The first number of the advisory locks of all chores."""

_TRY = text(f"SELECT pg_try_advisory_lock({_LOCKS}, :chore)")
_PING = text("SELECT 1")
_LIMIT = text("SELECT set_config(name, :limit, false) FROM pg_settings WHERE name = 'idle_session_timeout'")
"""Sets the session's idle timeout, a setting that PostgreSQL has since version 14."""


class Chore(IntEnum):
    """The chores that need a leader. Each value is the number of the chore's lock."""

    SETTLE_ENDED_WORKFLOWS = 1
    MOVE_JOBS_OF_LOST_HOSTS = 2
    LOOK_FOR_NEWS_FOR_GITHUB = 3


class Leader:
    """A candidate for one chore. It is the leader while it holds the chore's advisory lock; with SQLite, always.

    There may be two leaders for a short time, if the first was suspended and resumes: a chore has to be idempotent.
    """

    def __init__(self, engine: Engine, chore: Chore) -> None:
        self._engine, self._chore = engine, chore
        self._session: Connection | None = None

    def leads(self) -> bool:
        """Return whether this process is the leader now. Call it more often than every `IDLE_SECONDS`; Raise DBAPIError
        if the database is unreachable.
        """
        if self._engine.dialect.name != "postgresql":
            return True
        if self._session is None:
            self._session = self._elect()
            return self._session is not None
        try:
            self._session.execute(_PING)
        except DBAPIError:
            self.resign()
            raise
        return True

    def resign(self) -> None:
        """Let another process become the leader."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _elect(self) -> Connection | None:
        session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            if session.execute(_TRY, {"chore": self._chore}).scalar():
                session.detach()  # the lock is the session's: this one is closed, never used again by the pool
                session.execute(_LIMIT, {"limit": f"{IDLE_SECONDS * 1000:.0f}ms"})
                return session
        except DBAPIError:
            session.close()
            raise
        session.close()
        return None
