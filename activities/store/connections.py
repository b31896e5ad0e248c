"""How many PostgreSQL connections each process of a host may open, and whether the server allows those of all hosts
(ruling Q7).
"""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, text

from activities.store.leader import Chore

LEADERS = len(Chore)
"""Sessions of leaders, of all hosts together."""

COMMANDS = 5
"""Connections left for typed commands, of all hosts together: each takes one while it runs."""

LEAST = 4
"""The least that the processes of a host need together."""


class Member(StrEnum):
    """A process that connects to the store."""

    WORKER = "worker"
    BRIDGE = "bridge"
    GITHUB = "github"
    COMMAND = "command"
    """A typed command."""


def share(pool: int, member: Member) -> int:
    """Return how many of a host's `[store].pool` connections a process may have at once."""
    worker, github = pool // 2, 1
    of_members = {Member.WORKER: worker, Member.GITHUB: github, Member.BRIDGE: pool - worker - github}
    return of_members.get(member, 1)


@dataclass(frozen=True)
class Capacity:
    """The connections of a server, and those that the hosts of this store may take."""

    usable: int
    """The server's `max_connections`, without those it reserves."""
    others: int
    """Connections to the server's other databases now, such as Temporal's."""
    hosts: int
    pool: int

    @property
    def demand(self) -> int:
        return self.hosts * self.pool + LEADERS + COMMANDS

    @property
    def lacking(self) -> int:
        return max(0, self.demand + self.others - self.usable)

    @property
    def fitting_pool(self) -> int | None:
        """Return the largest pool with which all hosts fit; None if not even the least does."""
        pool = (self.usable - self.others - LEADERS - COMMANDS) // self.hosts
        return pool if pool >= LEAST else None


_SERVER = text("""
    SELECT current_setting('max_connections')::int
         - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true), '0')::int AS usable,
           (SELECT count(*) FROM pg_stat_activity
             WHERE datname IS NOT NULL AND datname <> current_database()) AS others
""")
"""`reserved_connections` is there from PostgreSQL 16 on."""


def capacity(connection: Connection, hosts: int, pool: int) -> Capacity:
    """Ask PostgreSQL what it allows, for so many hosts with this `[store].pool`."""
    row = connection.execute(_SERVER).one()
    return Capacity(row.usable, row.others, max(1, hosts), pool)
