"""The proof that a box holds can fail, and does where there is none (ruling N2)."""

from pathlib import Path

import pytest

from activities.boxes import probes
from activities.boxes.box import BoxKind, Network
from activities.boxes.machine import Machine, look
from activities.boxes.probes import PROBES, Proof, prove
from tests.activities.boxes.world import UID

pytestmark = pytest.mark.ruling("N2")


@pytest.mark.parametrize("network", Network)
def test_boxes_of_this_machine_hold(kind: BoxKind, network: Network) -> None:
    """But for what Landlock leaves to an account that is not root."""
    there = look(UID)
    left = ("reach a host socket",) if kind is BoxKind.LANDLOCK and there.uid is None else ()
    assert prove(kind, network, there) == Proof(escaped=left)


def test_without_a_box_every_way_out_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nothing is left where the caller stands: it works in its own folder."""
    from activities.boxes.enter import boxed

    monkeypatch.setattr(probes, "boxed", lambda _, command, env, first: boxed(None, command, env))
    monkeypatch.chdir(tmp_path)
    worked = probes.tried(BoxKind.BWRAP, Network.NONE, Machine(bwrap="", landlock=0, own_network=True))
    assert set(PROBES) <= set(worked)
    assert not any(tmp_path.iterdir())
