"""Doctor's check of boxes (ruling N2)."""

from pathlib import Path

import pytest

from activities.boxes import control_group, probes, try_boxes
from activities.boxes.control_group import MEMORY, PROCESSES, Group, JobGroup
from activities.boxes.probes import Proof
from activities.boxes.try_boxes import Machine
from activities.settings.home import Home
from bridge.operations.health import boxes
from bridge.operations.health.findings import Level
from bridge.operations.service import Service

pytestmark = pytest.mark.ruling("N2")
GOOD = Machine(bwrap="", own_network=True)


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[Proof]:
    """Set the outcomes of the tests of boxes, in order; no box is really tested."""
    outcomes = list[Proof]()
    monkeypatch.setattr(probes, "proof_of", lambda *_: outcomes.pop(0) if outcomes else Proof())
    monkeypatch.setattr(try_boxes, "look", lambda _: GOOD)
    return outcomes


def said(home: Home) -> list[tuple[Level, str, str]]:
    return [(each.level, each.says, each.fix) for each in boxes.box_findings(Service(home))]


def test_a_box_that_holds_is_well_and_an_open_network_is_told(home: Home, proofs: list[Proof]) -> None:
    [(level, says, fix)] = said(home)
    tried = f"{len(probes.PROBES)} ways out were tried, none leads out"
    assert (level, says, fix) == (Level.OK, f"bwrap, network model, for shell, by bwrap: {tried}", "")
    home.config.write_text('[runtimes.shell]\nnetwork = "full"\n')
    [(level, says, _)] = said(home)
    assert level is Level.OK
    assert says.startswith(f"bwrap, network full, for shell, by bwrap: {tried}; all of the network is open")


def test_looking_makes_no_home(tmp_path: Path, proofs: list[Proof]) -> None:
    there = Home(tmp_path / "not-yet")
    assert [level for level, *_ in said(there)] == [Level.OK]
    assert not there.root.exists()


def test_a_box_that_does_not_hold_is_wrong(home: Home, proofs: list[Proof]) -> None:
    proofs.append(Proof(escaped=("read a key",)))
    [(level, says, fix)] = said(home)
    assert level is Level.WRONG
    assert "in it a program can read a key" in says
    assert '[runtimes.shell].box = "none" (in a container, the container is the box)' in fix


def test_a_box_that_cannot_be_made_is_wrong_and_says_what_to_set(home: Home, proofs: list[Proof]) -> None:
    proofs.append(Proof("no room"))
    [(level, says, fix)] = said(home)
    assert level is Level.WRONG
    assert "no room" in says
    assert "[runtimes.shell]" in fix


def test_a_folder_that_no_box_may_show_is_wrong(home: Home, proofs: list[Proof]) -> None:
    home.config.write_text(f'[runtimes.shell]\nread = ["{home.root}"]\n')
    [(level, says, _)] = said(home)
    assert level is Level.WRONG
    assert "holds the service's own secrets" in says


NO_GROUP = "no control group can be made here: agents can use up the machine's memory and processes"
ALL = "all agents together may take"
BARE = "all of the memory and"
LITTLE = f"{BARE} any number of processes"
OF_ALL, OF_JOBS = "80 % of this machine's memory and 8192 processes", "50 % of this machine's memory and 4096 processes"


@pytest.mark.parametrize(
    ("folders", "level", "says"),
    [
        ({MEMORY, PROCESSES}, Level.OK, f"{ALL} {OF_ALL}, each job {OF_JOBS}"),
        (
            {PROCESSES},
            Level.WARNING,
            f"{ALL} {BARE} 8192 processes, each job {BARE} 4096 processes",
        ),
        (set(), Level.WARNING, NO_GROUP),
    ],
)
def test_what_agents_may_take_is_told_and_is_a_warning_where_that_cannot_be_limited(
    home: Home, monkeypatch: pytest.MonkeyPatch, folders: set[str], level: Level, says: str
) -> None:
    group = Group(dict.fromkeys(folders, home.root / "no-such-group"), {}) if folders else None
    monkeypatch.setattr(boxes, "_inotify_instances", lambda: "128" if folders else "")
    monkeypatch.setattr(control_group, "make", lambda *_: group)
    monkeypatch.setattr(JobGroup, "make", lambda _: folders)
    [finding] = boxes.limit_findings(Service(home))
    shared = "; the 128 inotify instances of an account are shared by all" if folders else ""
    assert (finding.level, finding.says) == (level, f"{says}{shared}")
    assert ("Delegate=yes" in finding.fix) == (level is Level.WARNING)


def test_jobs_without_limits_of_their_own_are_a_warning(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(dict.fromkeys((MEMORY, PROCESSES), home.root / "no-such-group"), {})
    monkeypatch.setattr(control_group, "make", lambda *_: group)
    [finding] = boxes.limit_findings(Service(home))
    assert finding.level is Level.WARNING
    assert finding.says.startswith(f"{ALL} {OF_ALL}, each job {LITTLE}")


def test_no_limit_that_is_wanted_is_no_warning(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.config.write_text("[worker]\nagents_memory = 0\njob_memory = 0\n")
    group = Group({PROCESSES: home.root / "no-such-group"}, {})
    monkeypatch.setattr(control_group, "make", lambda *_: group)
    monkeypatch.setattr(JobGroup, "make", lambda _: {PROCESSES})
    assert [each.level for each in boxes.limit_findings(Service(home))] == [Level.OK]


def test_no_box_is_a_warning_when_it_is_wanted_and_wrong_when_there_is_none(
    home: Home, proofs: list[Proof], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(try_boxes, "look", lambda _: Machine(bwrap=try_boxes.INSTALL))
    [(level, says, fix)] = said(home)
    assert level is Level.WRONG
    assert "no box of this machine holds agents of shell" in says
    assert '[runtimes.shell].box = "none"' in fix
    home.config.write_text('[runtimes.shell]\nbox = "none"\n')
    [(level, says, _)] = said(home)
    assert level is Level.WARNING
    assert "shell runs in no box" in says
