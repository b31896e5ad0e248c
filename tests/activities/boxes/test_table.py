"""The manual's table of boxes has the results of all attacks (ruling N2)."""

from activities.boxes.box import Network
from activities.boxes.probes import PROBES
from activities.host.boxing import network_of
from activities.settings.model import RuntimeSection, Settings
from tests.activities.boxes.attacks import (
    ATTACKS,
    BESIDE_TCP,
    FAMILIES,
    KERNEL,
    LEFT,
    METADATA,
)
from tests.written import ROOT

PAGE = (ROOT / "cli/topics/boxes.md").read_text()
SET_UID = "make a program for others that runs as the service"
OF_THE_WORKER = {
    *("write the memory of the worker", "take a descriptor of the worker", "compare with the worker"),
    *("read the environment of the worker", "read the memory of the worker", "signal the worker"),
}
HELD_UP = {
    *("limit the worker", "tie the worker to a processor", "have the worker run last", "slow the worker down"),
    "let the worker's disk wait",
}
ROWS = {
    "read the bridge's token": {
        *("read the bridge's token", "read the store", "read a key of ssh", "read another job's work"),
        *("read the run's own folder", "reach the root of process 1", "use a descriptor that was left open"),
    },
    "write the operator's checkout": {
        *("write another job's work", "write the operator's checkout", "write the service's home"),
        *("write what is only lent", "write beside everything"),
    },
    "change modes, owners": METADATA.keys() - {SET_UID},
    "make a program that runs as the service": {SET_UID},
    "make a read-only folder writable": {"make what is lent writable again"},
    "read the worker's environment": OF_THE_WORKER,
    "limit the worker": HELD_UP,
    "use a socket in the file system": {"speak to a socket in the file system"},
    "use an abstract socket": {"speak to an abstract socket"},
    "reach this machine's loopback": {"speak to a service on loopback", *BESIDE_TCP},
    "speak over other families": FAMILIES.keys(),
    "attach shared memory": {
        *("read shared memory of other programs", "attach System V shared memory", "use the keys of the service"),
    },
    "use what the kernel has": KERNEL.keys() - OF_THE_WORKER - HELD_UP,
    "widen what its control group": {"change a control group"},
}
"""The beginning of a row, and its attacks: `test_attacks` and `test_accounts` make them."""

OF_PROBES = {
    "see which processes there are": "see a host process",
    "see the machine's connections": "see the host's connections",
}
"""Rows of a probe, which `test_probes` finds to fail."""


def cells(row: str) -> tuple[str, str]:
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {row}")]
    *_, bwrap, none, _ = (cell.strip() for cell in line.split("|"))
    return bwrap, none


def test_every_attack_has_its_row() -> None:
    assert ATTACKS.keys() == set().union(*ROWS.values())


def test_a_row_says_no_where_its_attacks_fail_and_names_what_is_left() -> None:
    for row, attacks in ROWS.items():
        bwrap, none = cells(row)
        assert bwrap.startswith("no"), row
        assert ("a log of its own run" in bwrap) is (LEFT in attacks), row
        assert none == ("no" if attacks == {"change a control group"} else "yes"), row


def test_a_row_of_a_probe_says_no() -> None:
    for row, probe in OF_PROBES.items():
        assert probe in PROBES
        assert cells(row) == ("no", "yes"), row


def test_the_defaults_are_those_of_the_settings() -> None:
    section = RuntimeSection()
    assert (section.box, Settings().temporal.by_hand) == ("auto", "auto")
    assert "| `box` | `auto` (the default) and `bwrap`:" in PAGE
    for runtime in ("shell", "runtime_a"):
        assert network_of(section, runtime)[0] is Network.MODEL
    assert "| `network` | `model` (the default)" in PAGE
    assert network_of(section, "shell")[1] == ("*",)
    assert '`shell` and scripts reach `*` unless `network = "model"` is set' in PAGE
