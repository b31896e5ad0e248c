"""A home that 0.2.0 left with several keys: it seals with one, and opens what any of them sealed (ruling Q10)."""

from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload

from activities.runs import run_folders
from activities.runs.records import RecordKind, with_seal
from activities.sealing import seal_key
from activities.sealing.payload_seals import Binding, PayloadSeals
from tests.keys import turn
from workflows.temporal.seals import UnsealedError

pytestmark = pytest.mark.ruling("Q10")

PLACE = Binding("workflow", "job-1")


def some() -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=b'"x"')


@pytest.fixture
def home(tmp_path: Path) -> Path:
    seal_key.ensure(tmp_path)
    return tmp_path


@pytest.mark.parametrize("encrypt", [False, True])
def test_what_the_former_key_sealed_is_opened_until_all_keys_are_replaced(home: Path, encrypt: bool) -> None:
    before = PayloadSeals.of_home(home, encrypt=encrypt).seal(some(), PLACE)
    turn(home)
    seals = PayloadSeals.of_home(home, encrypt=encrypt)
    after = seals.seal(some(), PLACE)
    assert {seals.unseal(payload, PLACE).data for payload in (before, after)} == {some().data}
    assert before.metadata["key"] != after.metadata["key"]
    seal_key.renew(home)
    for payload in (before, after):
        with pytest.raises(UnsealedError):
            PayloadSeals.of_home(home, encrypt=encrypt).unseal(payload, PLACE)


def test_a_seal_that_names_no_key_is_refused(home: Path) -> None:
    seals = PayloadSeals.of_home(home, encrypt=False)
    nameless = seals.seal(some(), PLACE)
    del nameless.metadata["key"]
    with pytest.raises(UnsealedError):
        seals.unseal(nameless, PLACE)


def test_the_records_of_a_run_keep_their_key(home: Path) -> None:
    begun, later = (run_folders.new(home / "runs", "job-1", attempt) for attempt in (1, 2))
    key = run_folders.made_run_key(begun)
    (begun / RecordKind.CLAIM.value).write_bytes(with_seal(key, begun, RecordKind.CLAIM, b"{}"))
    turn(home)
    assert run_folders.run_key(begun) == key
    assert run_folders.run_key(later) == seal_key.derive(seal_key.ensure(home), "run", later.name)


def test_all_keys_are_replaced(home: Path) -> None:
    turn(home)
    before = seal_key.every(home)
    assert len(before) == 2
    seal_key.renew(home)
    [new] = seal_key.every(home)
    assert new not in before
