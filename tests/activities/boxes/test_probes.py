"""The proof of a box can fail, and does without a box (ruling N2)."""

from pathlib import Path

import pytest

from activities.boxes import probes
from activities.boxes.box import Network
from activities.boxes.probes import PROBES, Proof, prove
from activities.boxes.try_boxes import Machine, look
from tests.activities.boxes.world import UID

pytestmark = pytest.mark.ruling("N2")


@pytest.mark.parametrize("network", Network)
def test_boxes_of_this_machine_hold(network: Network) -> None:
    there = look(UID)
    if why := there.lacks(network):
        pytest.skip(why)
    assert prove(network, there) == Proof()


def test_a_verdict_is_remembered_and_a_bad_one_asked_for_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [Proof("busy"), Proof()]
    monkeypatch.setattr(probes, "prove", lambda *_: answers.pop(0))
    there = Machine(bwrap="", uid=12_345)
    assert [probes.proof_of(Network.NONE, there).problem for _ in range(3)] == ["busy"] * 3
    monkeypatch.setattr(probes, "AGAIN_SECONDS", -1.0)
    assert [probes.proof_of(Network.NONE, there).problem for _ in range(3)] == [""] * 3


def test_without_a_box_every_way_out_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The probes work in their own folder, and leave nothing in the caller's."""
    from activities.boxes.enter import prepare

    monkeypatch.setattr(probes, "prepare", lambda _, command, env: prepare(None, command, env))
    monkeypatch.chdir(tmp_path)
    worked = probes.try_probes(Network.NONE, Machine(bwrap="", own_network=True))
    assert set(PROBES) <= set(worked)
    assert not any(tmp_path.iterdir())
