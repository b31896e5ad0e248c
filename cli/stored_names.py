"""Completion of stored names within milliseconds: reads the store directly, with few imports, and creates nothing
(K6).
"""

import re
from collections.abc import Mapping
from contextlib import closing

_QUERIES: Mapping[str, str] = {
    "agents": "SELECT name FROM agents WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT 200",
    "repos": "SELECT name FROM repos WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT 200",
    "pipelines": "SELECT name FROM pipelines WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT 200",
    "jobs": "SELECT job_id FROM jobs WHERE substr(job_id, 1, ?) = ? ORDER BY queued_at DESC LIMIT 30",
    "runs": "SELECT run_id FROM pipeline_runs WHERE substr(run_id, 1, ?) = ? ORDER BY rowid DESC LIMIT 30",
}
_SECONDS = 0.3
_NAME = re.compile(r"[\w@/+.,-]+", re.ASCII)
"""Names that need no quoting in a shell; others are not offered."""


def stored(kind: str, begun: str) -> list[str]:
    """Return the names of a kind with this prefix, newest jobs and runs first. Empty if there is no readable store."""
    from activities.settings.home import Home
    from workflows.model.errors import ServiceError

    home = Home.locate()
    if not home.store.is_file():
        return []
    import sqlite3

    try:
        home.trust()
        with closing(sqlite3.connect(f"{home.store.as_uri()}?mode=ro", uri=True, timeout=_SECONDS)) as store:
            found = [str(name) for (name,) in store.execute(_QUERIES[kind], (len(begun), begun))]
    except (sqlite3.Error, OSError, ServiceError):
        return []
    return [name for name in found if _NAME.fullmatch(name)]
