"""The output of `service daemon status`."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cli.drawing.lines import FOLDED, Piece, ScreenLine, Tone, of_state
from cli.drawing.screens import can_move
from workflows.text.plurals import quantity
from workflows.text.sizes import format_size

if TYPE_CHECKING:
    from bridge.machine.daemon_state import ChildState, DaemonState, DaemonStatus
    from bridge.operations.home.overview import Disk, HostNow, Overview
    from bridge.operations.settings import Process

_COLUMN = 16
_BELOW = " " * (_COLUMN + 1) + FOLDED
_FEW = 3


def lines(seen: "DaemonStatus", *, links: bool = False, now: Sequence[str] = ()) -> list[str]:
    """Return the daemon's status and addresses. On a terminal, the lists of Temporal's web UI are links; `links` prints
    their addresses.
    """
    state = seen.state
    if not seen.running:
        last = [f"last start failed: {state.problem}", f"try: {state.hint}"] if state and state.problem else []
        return [f"not running      home {seen.home}", *last, "start it         service daemon start", *now]
    if state is None:
        return [f"starting         process {seen.pid}, home {seen.home}", *now]
    spelt = links or not can_move(sys.stdout)
    phase = Piece(f"{state.phase:{_COLUMN}}", of_state(state.phase) if state.phase != "degraded" else Tone.BAD)
    return [
        ScreenLine(phase, f" process {seen.pid}, up {seen.uptime}, version {state.version}"),
        *_silence(seen),
        *now,
        *(_child(child) for child in state.children),
        *(_field("note", note) for note in state.notes),
        _field("home", seen.home),
        _field("temporal", f"{state.temporal_address}, namespace {state.namespace}"),
        *_bridge(state.bridge_url or "", spelt=spelt),
        *_lists(dict(seen.views), state, spelt=spelt),
    ]


def figures(overview: "Overview") -> Iterator[str]:
    """Yield a line each for the queue, the items that wait for people, today's cost, and disk space."""
    from workflows.policy.prices import dollars

    known, hosts, used = overview.counts, overview.slots, overview.spent_today
    if known is None or hosts is None or used is None:
        return
    if known.paused or known.blocked:
        paused = Piece(f"{known.paused} paused", Tone.ASKS if known.paused else Tone.PLAIN)
        blocked = Piece(f"{known.blocked} blocked", Tone.STUCK if known.blocked else Tone.PLAIN)
        yield _field("needs you", paused, ", ", blocked, " (service attention)")
    else:
        yield _field("needs you", "nothing")
    yield _field("queue", f"{_slots_in_use(known.running, hosts)}, {known.queued} queued")
    if len(hosts) > 1:
        yield _field("hosts", *_hosts(hosts))
    if known.stalled:
        yield _field("stands still", Piece(f"{known.stalled} stalled", Tone.BAD), " (service attention)")
    yield _field("spent today", f"{used.tokens:,} tokens, {dollars(used.cost_usd, assumed=used.price_assumed)} (UTC)")
    yield _field("disk", *_disk(overview.disk))


def not_routed(failures: int) -> list[ScreenLine]:
    """Return a line on coordinators whose delegations could not be routed, if there are any."""
    says = f"delegations of {quantity(failures, 'job')} (service job list --preflight-failed)"
    return [_field("not routed", says)] if failures else []


def settings(processes: "Sequence[Process]", *, whole: bool) -> list[str]:
    """Return lines on the running processes whose settings are outdated; abridged unless `whole`."""
    from bridge.operations import settings

    if not whole and can_move(sys.stdout):
        return list(_briefly(processes))
    rows = [line for process in processes for line in (*settings.in_words(process), *settings.way_to_force(process))]
    return [f"{'settings' if not line.startswith(' ') else '':{_COLUMN}} {line}" for line in rows]


def _briefly(processes: "Sequence[Process]") -> Iterator[str]:
    """Yield a line for each group of processes with the same outdated settings, then the commands that restart them."""
    differing: dict[str, list[str]] = {}
    for process in processes:
        differing.setdefault(_differences(process), []).append(process.name)
    for says, names in differing.items():
        yield _field("settings", f"{', '.join(names)}: {says}")
    for command in dict.fromkeys(process.restart for process in processes if process.changed):
        yield _field("", command)


def _differences(process: "Process") -> str:
    if process.fault:
        return f"still uses what it has read: {process.fault}"
    first = [
        f"{change.key} {change.there or 'not set'}, now {change.here or 'not set'}" for change in process.changed[:_FEW]
    ]
    more = [f"{len(process.changed) - _FEW} more (--all)"] if len(process.changed) > _FEW else []
    return f"restart needed for {quantity(len(process.changed), 'setting')}: {'; '.join([*first, *more])}"


def _field(name: str, *value: Piece | str) -> ScreenLine:
    return ScreenLine(f"{name:{_COLUMN}} ", *value, below=_BELOW)


def _lists(views: dict[str, str], state: "DaemonState", *, spelt: bool) -> Iterator[ScreenLine]:
    """Yield links to the lists in Temporal's web UI. Their addresses are longer than a terminal line, so they are
    printed only if `spelt`.
    """
    every = views.pop("all", "")
    embedded = any(child.name == "server" for child in state.children)
    missing = "served by the bridge, which is off: [bridge].enabled" if embedded else "the web UI of your cluster"
    if spelt or not every:
        yield ScreenLine(f"{'web ui':{_COLUMN}} ", every or missing)
        yield from (ScreenLine(f"{'':{_COLUMN}} {name}: {link}") for name, link in views.items())
        return
    named = [part for name, link in views.items() for part in (", ", Piece(name, link=link))]
    yield _field("web ui", Piece(state.ui_url or "", link=every), *named)


def _bridge(url: str, *, spelt: bool) -> list[ScreenLine]:
    if not url:
        return []
    if spelt:
        return [_field("bridge url", url), _field("dashboard", "service dashboard")]
    return [_field("dashboard", "service dashboard, served at ", url)]


def _silence(seen: "DaemonStatus") -> Iterator[ScreenLine]:
    from bridge.machine.daemon_state import RESTART, silence

    if words := silence(seen):
        yield _field("frozen", Piece(words, Tone.BAD), f" ({RESTART})")


def _child(child: "ChildState") -> ScreenLine:
    restarts = f"restarted {quantity(child.restarts, 'time')}" if child.restarts else ""
    if child.frozen_at:
        restarts += f", frozen at {child.frozen_at.astimezone():%Y-%m-%d %H:%M:%S}"
    again = f"at {child.again_at.astimezone():%H:%M:%S}" if child.again_at else ""
    parts = [f"process {child.pid}" if child.pid else "", restarts, child.note, again]
    tone = of_state(child.phase) if child.phase == "running" else Tone.BAD
    return _field(child.name, Piece(child.phase, tone), *(f", {part}" for part in parts if part))


def _slots_in_use(running: int, hosts: "Iterable[HostNow]") -> str:
    working = [host for host in hosts if host.works]
    slots = sum(host.slots for host in working)
    if not working:
        return f"{running} running, no worker is there"
    if running > slots:
        return (
            f"{slots} running on {quantity(slots, 'slot')}, {running - slots} waiting to be tried again or just ended"
        )
    return f"{running} running on {quantity(slots, 'slot')}"


def _hosts(hosts: "tuple[HostNow, ...]") -> Iterator[str | Piece]:
    for number, host in enumerate(hosts[:_FEW]):
        yield f"{', ' if number else ''}{host.name} {min(host.running, host.slots)} of {host.slots}"
        if not host.works:
            yield Piece(" (no worker)", Tone.BAD)
    if len(hosts) > _FEW:
        yield f", {len(hosts) - _FEW} more (--all)"


def _disk(disk: "Disk") -> Iterator[str]:
    parts = sorted(disk.parts, key=lambda part: -part.bytes)
    sizes = ", ".join(f"{part.name} {_more(part.whole)}{format_size(part.bytes)}" for part in parts)
    yield f"{_more(disk.whole)}{format_size(disk.bytes)}, {format_size(disk.free)} free{f': {sizes}' if sizes else ''}"


def _more(whole: bool) -> str:
    return "" if whole else "more than "
