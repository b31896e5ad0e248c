"""A home with several keys: it seals with one, and opens what any of them sealed (ruling Q10)."""

from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload

from activities.runs import run_folders
from activities.runs.records import Kind, sealed
from activities.sealing import payload_seals, seal_key
from activities.sealing.payload_seals import Bound, PayloadSeals
from workflows.temporal.seals import UnsealedError

pytestmark = pytest.mark.ruling("Q10")

PLACE = Bound("workflow", "job-1")


def some() -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=b'"x"')


@pytest.fixture
def home(tmp_path: Path) -> Path:
    seal_key.ensure(tmp_path)
    return tmp_path


@pytest.mark.parametrize("encrypt", [False, True])
def test_what_the_former_key_sealed_is_opened_after_the_turn(home: Path, encrypt: bool) -> None:
    former, seals = seal_key.ensure(home), PayloadSeals.of_home(home, encrypt=encrypt)
    before = seals.closed(some(), PLACE)
    seal_key.add(home, new := seal_key.new())
    assert seal_key.every(home) == (former, new)
    seal_key.rotate(home, new)
    seal_key.rotate(home, new)
    assert seal_key.every(home) == (new, former)
    follows = PayloadSeals.of_home(home, encrypt=encrypt)
    after = follows.closed(some(), PLACE)
    assert {follows.opened(each, PLACE).data for each in (before, after)} == {some().data}
    assert before.metadata["key"] != after.metadata["key"]
    assert seals.opened(after, PLACE).data == some().data, "a process that runs learns a key that it meets"
    seal_key.remove(home, former)
    with pytest.raises(UnsealedError):
        PayloadSeals.of_home(home, encrypt=encrypt).opened(before, PLACE)


def test_a_process_that_runs_seals_with_the_new_key_soon(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_seals, "LOOK_SECONDS", 0.0)
    seals = PayloadSeals.of_home(home, encrypt=False)
    seal_key.add(home, new := seal_key.new())
    seal_key.rotate(home, new)
    assert seals.closed(some(), PLACE).metadata["key"] == bytes.fromhex(seal_key.fingerprint(new))[:4]
    (home / seal_key.FILE).chmod(0o644)
    assert seals.opened(seals.closed(some(), PLACE), PLACE).data == some().data, "a key that was read stays in use"


def test_seals_of_earlier_releases_name_no_key_and_are_opened_with_any(home: Path) -> None:
    before = PayloadSeals.of_home(home, encrypt=False).closed(some(), PLACE)
    del before.metadata["key"]
    seal_key.add(home, new := seal_key.new())
    seal_key.rotate(home, new)
    assert PayloadSeals.of_home(home, encrypt=False).opened(before, PLACE).data == some().data


def test_the_records_of_a_run_keep_their_key(home: Path) -> None:
    begun, later = (run_folders.new(home / "runs", "job-1", attempt) for attempt in (1, 2))
    key = run_folders.made_run_key(begun)
    (begun / Kind.CLAIM.value).write_bytes(sealed(key, begun, Kind.CLAIM, b"{}"))
    seal_key.add(home, new := seal_key.new())
    seal_key.rotate(home, new)
    assert run_folders.run_key(begun) == key
    assert run_folders.run_key(later) == seal_key.derived(new, "run", later.name)


def test_exposed_keys_are_all_replaced(home: Path) -> None:
    seal_key.add(home, seal_key.new())
    before = seal_key.every(home)
    seal_key.renew(home)
    assert len(seal_key.every(home)) == 1
    assert not {*before} & {*seal_key.every(home)}
