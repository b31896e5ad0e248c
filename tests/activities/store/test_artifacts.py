"""Artifacts of hosts that share a store: written by one, read by all, removed by any (ruling Q2)."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, func, select, update

from activities.host.context import Context
from activities.settings.home import Home
from activities.settings.model import Settings, Store, WorkerSection
from activities.store import schema
from activities.store.artifacts import INLINE_LIMIT, MARGIN, Artifacts, OldArtifact
from activities.store.database import open_store
from activities.store.queries import now
from activities.store.secret_hosts import SecretElsewhereError
from activities.store.shared_artifacts import PART
from tests import keys
from workflows.model.errors import NotFoundError

pytestmark = pytest.mark.ruling("Q2")

TOKEN = "ghp" + "_" + "a1B2" * 9
DAY = 86_400.0


@dataclass
class Hosts:
    """Hosts on one PostgreSQL, with homes of their own and one seal key."""

    folder: Path
    url: str
    made: dict[str, Context] = field(default_factory=dict)

    def __call__(self, name: str) -> Context:
        if name not in self.made:
            home = keys.give(Home(self.folder / name).ensure())
            settings = Settings(store=Store(url=self.url), worker=WorkerSection(host=name))
            self.made[name] = Context(home, settings, open_store(home, self.url))
        return self.made[name]

    def age(self, digest: str, days: float) -> None:
        with self("one").store.begin() as connection:
            used = update(schema.artifacts).where(schema.artifacts.c.digest == digest)
            connection.execute(used.values(used_at=schema.artifacts.c.used_at - days * DAY))

    def known(self, digest: str) -> bool:
        with self("one").store.connect() as connection:
            query = select(func.count()).where(schema.artifacts.c.digest == digest)
            return connection.execute(query).scalar_one() == 1

    def old(self, name: str, days: float = 30) -> list[str]:
        """Return the names of old artifacts, as `service gc` on this host finds them."""
        return [each.name for each in self.collected(name, days)]

    def collected(self, name: str, days: float = 30) -> list[OldArtifact]:
        with self(name).store.connect() as connection:
            before = now(connection) - days * DAY
        return [*self(name).artifacts.old(before, before)]


@pytest.fixture
def hosts(tmp_path: Path, postgres: str) -> Iterator[Hosts]:
    made = Hosts(tmp_path, postgres)
    with made("one").store.begin() as connection:
        for table in (schema.artifacts, schema.kept_secrets):
            connection.execute(table.delete())
    yield made
    for context in made.made.values():
        context.store.dispose()


def cached(context: Context, digest: str) -> Path:
    return context.home.artifacts / "sha256" / digest[:2] / digest[2:]


@pytest.mark.parametrize("size", [INLINE_LIMIT + 1, PART, PART + 1, 3 * PART + 7])
def test_a_text_that_one_host_stores_is_read_by_another(hosts: Hosts, size: int) -> None:
    content = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    text = hosts("one").artifacts.text(content.decode())
    assert text.digest is not None
    assert hosts("two").artifacts.read(text).encode() == content
    assert cached(hosts("two"), text.digest).read_bytes() == content
    hosts("two").store.dispose()
    statements = counted(hosts("two").store)
    assert hosts("two").artifacts.read(text).encode() == content
    assert statements() == 0, "from its own home"


def test_on_sqlite_nothing_of_it_is_there(home: Home) -> None:
    store = open_store(home)
    context = Context(home, Settings(), store)
    statements = counted(store)
    digest = context.artifacts.put(b"x" * 5000)
    assert context.artifacts.get(digest) == b"x" * 5000
    context.artifacts.hand_over()
    assert statements() == 0
    assert sorted(path.name for path in home.artifacts.iterdir()) == ["lock", "sha256"]
    with pytest.raises(NotFoundError, match="the artifact 00ff is not in"):
        context.artifacts.get("00ff")
    store.dispose()


def counted(store: Engine) -> Callable[[], int]:
    """Count the statements that are sent to a store from now on."""
    sent: list[str] = []
    event.listen(store, "before_cursor_execute", lambda *words: sent.append(words[2]))
    return lambda: len(sent)


def test_a_known_text_is_written_by_one_statement_and_renewed_once_an_hour(hosts: Hosts) -> None:
    digest = hosts("one").artifacts.put(b"a" * 5000)
    hosts.age(digest, 2)
    statements = counted(hosts("two").store)
    hosts("two").artifacts.put(b"a" * 5000)
    assert statements() == 1
    assert hosts.old("one", 0.5) == []


def test_content_that_was_changed_in_a_home_or_in_the_store_is_not_used(hosts: Hosts) -> None:
    digest = hosts("one").artifacts.put(b"right" * 1000)
    hosts("two").artifacts.get(digest)
    cached(hosts("two"), digest).write_bytes(b"wrong")
    assert hosts("two").artifacts.get(digest) == b"right" * 1000
    with hosts("one").store.begin() as connection:
        connection.execute(update(schema.artifacts).values(body=b"wrong"))
    with pytest.raises(NotFoundError, match="was changed"):
        hosts("three").artifacts.get(digest)
    assert not cached(hosts("three"), digest).exists()
    assert not [*cached(hosts("three"), digest).parent.iterdir()], "no draft is left"


def test_a_missing_artifact_is_named_with_a_command(hosts: Hosts) -> None:
    with pytest.raises(NotFoundError, match="neither in this host's home nor in the store") as missing:
        hosts("one").artifacts.get("00ff")
    assert missing.value.hint.startswith("service daemon start  (on the host that wrote it")


def test_what_nothing_needs_is_removed_by_either_of_two_hosts_at_once(hosts: Hosts) -> None:
    digests = [hosts("one").artifacts.put(f"{number}".encode() * 2000) for number in range(20)]
    used = hosts("one").artifacts.put(b"used" * 2000)
    for digest in digests:
        hosts.age(digest, 31)
    artifacts = {name: hosts.collected(name) for name in ("one", "two")}
    assert [len(each) for each in artifacts.values()] == [20, 20]

    def remove(old: OldArtifact) -> bool:
        try:
            old.remove()
        except FileNotFoundError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        removed = [*threads.map(remove, [*artifacts["one"], *artifacts["two"]])]
    assert sum(removed) == 20, "each is counted by the host that removed it"
    assert [digest for digest in digests if hosts.known(digest)] == []
    assert hosts("three").artifacts.get(used) == b"used" * 2000


def test_what_is_used_at_the_last_moment_stays(hosts: Hosts) -> None:
    content = b"again" * 1000
    digest = hosts("one").artifacts.put(content)
    hosts.age(digest, 31)
    (old,) = hosts.collected("one")
    hosts("two").artifacts.put(content)
    with pytest.raises(FileNotFoundError):
        old.remove()
    assert hosts("three").artifacts.get(digest) == content


def test_writers_and_a_clean_up_at_once_lose_nothing(hosts: Hosts) -> None:
    for number in range(10):
        race(hosts, f"race {number}".encode() * 1000)


def race(hosts: Hosts, content: bytes) -> None:
    """Remove an artifact and write it from two hosts, all at once."""
    digest = hosts("one").artifacts.put(content)
    hosts.age(digest, 31)
    (old,) = hosts.collected("one")
    begin = threading.Barrier(3)

    def removed() -> None:
        begin.wait()
        try:
            old.remove()
        except FileNotFoundError:
            return

    def written(name: str) -> None:
        artifacts = hosts(name).artifacts
        begin.wait()
        artifacts.put(content)

    hosts("two"), hosts("three")
    with ThreadPoolExecutor(3) as threads:
        running = [threads.submit(removed), threads.submit(written, "two"), threads.submit(written, "three")]
    assert [each.result() for each in running] == [None] * 3
    assert hosts("four").artifacts.get(digest) == content


def test_the_margin_is_by_the_clock_of_the_database(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hosts("one").artifacts.put(b"x" * 5000)
    hosts.age(digest, 30 + (MARGIN - 60) / DAY)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert hosts.old("one") == []
    hosts.age(digest, 120 / DAY)
    assert hosts.old("one") == [f"artifact {digest}"]


def test_a_home_hands_over_what_it_alone_has_once(hosts: Hosts) -> None:
    own = Artifacts(hosts("one").home.artifacts)
    digest = own.put(f"use {TOKEN} ".encode() * 500)
    hosts("one").kept.hide(TOKEN)
    with pytest.raises(NotFoundError):
        hosts("two").artifacts.get(digest)
    os.utime(cached(hosts("one"), digest), (time.time() - 40 * DAY,) * 2)
    assert hosts.old("one") == [], "it is nowhere else"
    hosts("one").artifacts.hand_over()
    assert hosts("two").artifacts.get(digest) == own.get(digest)
    assert hosts.old("one") == [str(cached(hosts("one"), digest))], "it is a copy now"
    statements = counted(hosts("one").store)
    hosts("one").artifacts.hand_over()
    assert statements() == 0


def test_a_secret_stays_with_its_host_and_another_one_says_where_it_is(hosts: Hosts) -> None:
    hidden = hosts("one").kept.hide(f"use {TOKEN}")
    assert hosts("one").kept.show(hidden) == f"use {TOKEN}"
    with pytest.raises(SecretElsewhereError) as refused:
        hosts("two").kept.show(hidden)
    name = hidden.removeprefix("use redacted-")
    here, there = (hosts(each).home.root / "kept-secrets" for each in ("one", "two"))
    assert refused.value.message == (
        f"the text needs a secret (redacted-{name}) that only the host one keeps, and this is two"
    )
    assert refused.value.hint == f"scp -p one:{here / name} {there}/"
    (there / name).write_bytes((here / name).read_bytes())
    assert hosts("two").kept.show(hidden) == f"use {TOKEN}"
    assert hosts("two").kept.show("redacted-" + "0" * 20) == "redacted-" + "0" * 20, "no host has that"


@pytest.mark.parametrize("size", [5000, PART + 1])
def test_what_a_release_kept_in_an_object_store_is_brought_into_the_database(hosts: Hosts, size: int) -> None:
    content = b"x" * size
    digest = hosts("one").artifacts.put(content)
    in_object_store(hosts, digest)
    with pytest.raises(NotFoundError, match="in an object store, which this release does not read") as elsewhere:
        hosts("two").artifacts.get(digest)
    assert elsewhere.value.hint.startswith("service help sizing")
    hosts("one").artifacts.hand_over()  # its folder has what the operator has copied there
    assert hosts("two").artifacts.get(digest) == content


def test_gc_forgets_what_is_in_an_object_store_and_leaves_it_there(hosts: Hosts) -> None:
    digest = hosts("one").artifacts.put(b"x" * 5000)
    in_object_store(hosts, digest)
    hosts.age(digest, 31)
    (old,) = hosts.collected("two")
    old.remove()
    assert not hosts.known(digest)


def in_object_store(hosts: Hosts, digest: str) -> None:
    """Make the row what release 0.2.0 wrote where `[artifacts].url` was set."""
    with hosts("one").store.begin() as connection:
        connection.execute(schema.artifact_parts.delete().where(schema.artifact_parts.c.digest == digest))
        connection.execute(update(schema.artifacts).where(schema.artifacts.c.digest == digest).values(body=None))
