"""The store on SQLite, and on a PostgreSQL of the test session if its programs are installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from activities.settings.home import Home
from activities.store.database import open_store


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = shutil.which("initdb") or (str(found[-1]) if found else None)
    return Path(program).parent if program else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the URL of a server that lives as long as the session."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: the store is proven on SQLite only (apt-get install postgresql)")
    # Not below pytest's own folders, which are closed to PostgreSQL's account.
    with tempfile.TemporaryDirectory(prefix="service-postgres-", ignore_cleanup_errors=True) as name:
        folder, as_owner = Path(name), _unprivileged(Path(name))

        def run(program: str, *words: str) -> None:
            subprocess.run([*as_owner, str(programs / program), *words], check=True, capture_output=True, cwd=folder)

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        data = str(folder / "data")
        run("initdb", "-D", data, "-U", "service", "--auth=trust", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        options += " -c max_connections=30"
        run("pg_ctl", "-D", data, "-o", options, "-w", "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql+psycopg://service@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")


def _unprivileged(folder: Path) -> list[str]:
    """Return the words that run PostgreSQL as its own account, since it refuses root, and give it the folder."""
    if os.getuid() != 0:
        return []
    owner = pwd.getpwnam("postgres")
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, home: Home) -> Iterator[Engine]:
    """Open an empty store, on each supported database. Its connections are closed afterwards."""
    url = ""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
        emptied(url)
    engine = open_store(home, url)
    yield engine
    engine.dispose()


def emptied(url: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
