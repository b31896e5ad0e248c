"""The proof of a box can fail, and does without a box (ruling N2)."""

from pathlib import Path

import pytest

from activities.boxes import probes
from activities.boxes.box import BoxKind, Network
from activities.boxes.probes import PROBES, Proof, prove
from activities.boxes.try_boxes import Machine, look
from tests.activities.boxes.world import UID

pytestmark = pytest.mark.ruling("N2")


@pytest.mark.parametrize("network", Network)
def test_boxes_of_this_machine_hold(kind: BoxKind, network: Network) -> None:
    """Landlock's do not: `/proc` is the machine's, and the account's own files stay accessible."""
    there = look(UID)
    proof = prove(kind, network, there)
    if kind is BoxKind.BWRAP:
        assert proof == Proof()
    else:
        assert not proof.holds
        assert "see a host process" in proof.escaped
        assert ("reach a host socket" in proof.escaped) is (there.uid is None)
        assert not {"read a key", "write outside", "remount", "signal a host process"} & {*proof.escaped}


def test_a_verdict_is_remembered_and_a_bad_one_asked_for_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [Proof("busy"), Proof()]
    monkeypatch.setattr(probes, "prove", lambda *_: answers.pop(0))
    there = Machine(bwrap="", landlock=0, uid=12_345)
    assert [probes.proved(BoxKind.BWRAP, Network.NONE, there).problem for _ in range(3)] == ["busy"] * 3
    monkeypatch.setattr(probes, "AGAIN_SECONDS", -1.0)
    assert [probes.proved(BoxKind.BWRAP, Network.NONE, there).problem for _ in range(3)] == [""] * 3


def test_without_a_box_every_way_out_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The probes work in their own folder, and leave nothing in the caller's."""
    from activities.boxes.enter import boxed

    monkeypatch.setattr(probes, "boxed", lambda _, command, env: boxed(None, command, env))
    monkeypatch.chdir(tmp_path)
    worked = probes.tried(BoxKind.BWRAP, Network.NONE, Machine(bwrap="", landlock=0, own_network=True))
    assert set(PROBES) <= set(worked)
    assert not any(tmp_path.iterdir())
