"""Admission to a fleet: the first worker says what all must have, and nobody works with another key or a taken name."""

from pathlib import Path

import pytest
from sqlalchemy import update

from activities.host import admission, identity
from activities.host.admission import JoiningHost, NotAdmittedError
from activities.host.context import Context
from activities.sealing import seal_key
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import schema
from activities.store.database import open_store
from activities.store.queries import now
from activities.store.registry import host_rows

pytestmark = pytest.mark.ruling("Q1")


def host(tmp_path: Path, home: str, name: str, *, key: Context | None = None) -> Context:
    """Return a host of a fleet, with the key of another if one is given. Its database stands for PostgreSQL."""
    place = Home(tmp_path / home).ensure()
    url = f"sqlite:///{tmp_path}/fleet.db"
    settings = Settings.model_validate({"worker": {"host": name}, "store": {"url": url}})
    if key is not None:
        place.seal_key.write_bytes(seal_key.ensure(key.home.root))
        place.seal_key.chmod(0o600)
    return Context(place, settings, open_store(place, url))


def admit(context: Context, namespace: str = "team") -> None:
    admission.admit(context, namespace, started_at=1.0)


def refusal(context: Context, namespace: str = "team") -> NotAdmittedError:
    """Return why a host is refused, the same before and at its start; it records nothing of it."""
    before = (host_rows.every(context.store), host_rows.cluster(context.store))
    candidate = JoiningHost(context.store, context.home, context.settings, namespace)
    with pytest.raises(NotAdmittedError) as looked:
        admission.check(candidate)
    with pytest.raises(NotAdmittedError) as tried:
        admit(context, namespace)
    after = (host_rows.every(context.store), host_rows.cluster(context.store))
    assert [row.seen_at for row in before[0]] == [row.seen_at for row in after[0]]
    assert before[1] == after[1]
    assert looked.value.message.partition(", seen")[0] == tried.value.message.partition(", seen")[0]
    return looked.value


def test_the_first_worker_says_what_all_hosts_must_have(tmp_path: Path) -> None:
    one = host(tmp_path, "one", "web-1")
    admit(one)
    known = host_rows.cluster(one.store)
    key = seal_key.fingerprint(seal_key.ensure(one.home.root))
    assert known == host_rows.Cluster(key, "team", host_rows.release())
    admit(host(tmp_path, "two", "web-2", key=one))
    assert [(row.name, row.key) for row in host_rows.every(one.store)] == [("web-1", key), ("web-2", key)]
    assert host_rows.cluster(one.store) == known


def test_a_host_with_another_key_is_refused_and_told_where_the_right_one_is(tmp_path: Path) -> None:
    admit(host(tmp_path, "one", "web-1"))
    two = host(tmp_path, "two", "web-2")
    without = refusal(two)
    assert without.message.startswith("this home has no seal.key, and that of its store's hosts is ")
    assert not two.home.seal_key.exists(), "none is made that nobody could read"
    own = seal_key.fingerprint(seal_key.ensure(two.home.root))[:12]
    other = refusal(two)
    assert other.message.startswith(f"this home's seal.key is {own}, and that of its store's hosts is ")
    assert other.hint == f"scp web-1:.service/seal.key {two.home.seal_key} && chmod 600 {two.home.seal_key}"


def test_one_host_alone_that_lost_its_key_is_told_how_to_replace_it(tmp_path: Path) -> None:
    one = host(tmp_path, "one", "web-1")
    admit(one)
    one.home.seal_key.unlink()
    assert refusal(one).hint.startswith("service host replace-key ")


def test_a_key_that_is_kept_beside_the_one_in_use_admits_too(tmp_path: Path) -> None:
    one, two = host(tmp_path, "one", "web-1"), host(tmp_path, "two", "web-2")
    admit(one)
    seal_key.ensure(two.home.root)
    seal_key.add(two.home.root, seal_key.ensure(one.home.root))
    admit(two)


def test_a_host_in_another_namespace_is_refused(tmp_path: Path) -> None:
    one = host(tmp_path, "one", "web-1")
    admit(one)
    message = refusal(host(tmp_path, "two", "web-2", key=one), "other")
    assert message.message == "this host works in the Temporal namespace other, and the others of its store in team"
    assert message.hint == f'set namespace = "team" in [temporal] of {tmp_path}/two/config.toml'


@pytest.mark.parametrize(("seconds", "stopped", "free"), [(12, False, False), (61, False, True), (1, True, True)])
def test_a_name_that_another_machine_has_is_free_after_a_minute_or_a_stop(
    tmp_path: Path, seconds: int, stopped: bool, free: bool
) -> None:
    one = host(tmp_path, "one", "web-1")
    admit(one)
    if stopped:
        host_rows.stop(one.store, "web-1", started_at=1.0)
    with one.store.begin() as connection:
        connection.execute(update(schema.hosts).values(seen_at=now(connection) - seconds))
    two = host(tmp_path, "two", "web-1", key=one)
    if not free:
        message = refusal(two)
        in_use = "the host name web-1 is in use on another machine or in another home, seen "
        seen = int(message.message.removeprefix(in_use).partition(" s")[0])
        assert 12 <= seen < 61
        assert message.hint == (
            f'set host = "ANOTHER_NAME" in [worker] of {two.home.config}  '
            f"(or, if that one is gone for good, wait {60 - seen} s)"
        )
        return
    admission.check(JoiningHost(two.store, two.home, two.settings, "team"))
    admit(two)
    assert not identity.see(one, 1.0), "it has lost its name"
    assert host_rows.every(one.store)[0].machine == identity.machine(two.home.root)


def test_a_worker_that_starts_again_in_its_home_keeps_its_name(tmp_path: Path) -> None:
    one = host(tmp_path, "one", "web-1")
    admit(one)
    admit(one)


def test_a_home_with_a_database_of_its_own_may_move_and_change_its_key_and_namespace(bare_home: Home) -> None:
    """A backup that was just made is restored elsewhere: by its rows, the host works in the other home."""
    alone = Context(bare_home.ensure(), Settings(), open_store(bare_home))
    admit(alone)
    with alone.store.begin() as connection:
        connection.execute(update(schema.hosts).values(machine="another"))
    admission.check(JoiningHost(alone.store, alone.home, alone.settings, "team"))
    admit(alone)
    alone.home.seal_key.unlink()
    admit(alone, "another")
    known = host_rows.cluster(alone.store)
    assert known is not None
    assert (known.key, known.namespace) == (seal_key.fingerprint(seal_key.ensure(alone.home.root)), "another")
