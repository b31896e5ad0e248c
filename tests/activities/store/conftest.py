"""The store on SQLite, and on a PostgreSQL of the session's own where its programs are installed."""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from activities.settings.home import Home
from activities.store.database import open_store


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = shutil.which("initdb") or (str(found[-1]) if found else None)
    return Path(program).parent if program else None


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that lives as long as the session."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: the store is proven on SQLite only (apt-get install postgresql)")
    folder = tmp_path_factory.mktemp("postgres")
    as_owner: list[str] = []
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        owner = pwd.getpwnam("postgres")
        base = tmp_path_factory.getbasetemp()
        for path in (base.parent, base):
            path.chmod(0o711)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_owner = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def run(program: str, *words: str) -> None:
        subprocess.run([*as_owner, str(programs / program), *words], check=True, capture_output=True, cwd=folder)

    data = str(folder / "data")
    run("initdb", "-D", data, "-U", "service", "--auth=trust", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    run("pg_ctl", "-D", data, "-o", options, "-w", "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql+psycopg://service@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, home: Home) -> Engine:
    """An empty store, on each database it must work on."""
    if request.param == "sqlite":
        return open_store(home)
    url: str = request.getfixturevalue("postgres")
    with create_engine(url).begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    return open_store(home, url)
