"""The daemon's members, run by this process until a stop signal: one daemon per home, logs on standard error."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from activities.runs import service_process
from activities.settings.home import Home
from activities.settings.ready import beat_of, keep_beating, pid_of
from activities.store.registry.host_rows import release
from bridge.daemon import logs, replace_seal_key
from bridge.daemon.diagnosis import database_in_use, diagnose_bridge, diagnose_program, diagnose_server
from bridge.daemon.member import MemberProgram, until
from bridge.daemon.options import DaemonOptions
from bridge.daemon.server import (
    Queue,
    find_program,
    own_environment,
    polls,
    prepare_namespace,
    server_answers,
    server_beat,
    server_command,
    server_environment,
)
from bridge.daemon.supervision import MemberGroup
from bridge.machine import web_ui
from bridge.machine.daemon_state import ChildState, DaemonState, GroupPhase, StateFile
from bridge.machine.locks import FileLock, holder
from bridge.machine.ports import LOOPBACK, PortTakenError, choose_port
from bridge.machine.web_ui import Listener
from bridge.machine.writable import require_writable
from workflows.model.errors import RefusedError, ServiceError

log = logging.getLogger(__name__)

_PORT_RACES = 5
_SERVER = "server"
_NO_UI_PORT = "ui_port has no effect any more: the bridge serves Temporal's web UI, on its own port"
_REJOIN_PAUSE = 0.2
_LAST_ONE_ENDING = 2.0
"""Seconds a killed process may need to release its lock."""


def run_foreground(home: Home, options: DaemonOptions, lock: FileLock | None = None) -> None:
    """Run the daemon in this process until it is stopped. Raise if a member can't be started. `lock` is the daemon's
    lock, if inherited.
    """
    service_process.to_stderr("%(asctime)s %(levelname)s %(message)s")
    asyncio.run(_run(home, options, lock))


async def _run(home: Home, options: DaemonOptions, lock: FileLock | None) -> None:
    """Run all members until SIGTERM, SIGINT or SIGHUP. Raise if they cannot be started, or if another daemon runs."""
    require_writable(home)
    # The lock is never released: waiting for it means waiting for the end of this process.
    if lock is None and FileLock.take(home.daemon_lock, wait=1.0) is None:
        raise RefusedError(
            f"a daemon (process {holder(home.daemon_lock)}) already runs for {home.root}",
            "service daemon status  (or, to end it: service daemon stop)",
        )
    initial = DaemonState(
        pid=os.getpid(),
        phase=GroupPhase.STARTING,
        started_at=datetime.now(UTC),
        version=release(),
        namespace=options.namespace,
        settings=options.settings,
    )
    state = StateFile(home.daemon_state, initial)
    chores = (
        keep_beating(home.daemon_state),
        logs.keep_small(home.logs),
        replace_seal_key.keep_closed(home),
        replace_seal_key.seal_schedules(home, lambda: state.state.phase is GroupPhase.RUNNING),
    )
    tidy = [service_process.watch_task(asyncio.create_task(chore), ends=False) for chore in chores]
    try:
        replace_seal_key.turn(home, alone=options.embedded and options.own_store)
        with _stop_signals() as stop:
            await _run_members(home, options, state, stop)
    except ServiceError as error:
        state.update(phase=GroupPhase.FAILED, problem=error.message, hint=error.hint)
        raise
    finally:
        for chore in tidy:
            chore.cancel()
    state.update(phase=GroupPhase.STOPPED)


async def _run_members(home: Home, options: DaemonOptions, state: StateFile, stop: asyncio.Event) -> None:
    if not options.embedded:
        await _with_free_ports(options, lambda: _supervise(_external_members(home, options, state), state, stop))
        return
    with _server_lock(home) as lock:
        await _with_free_ports(options, lambda: _supervise(_embedded_members(home, options, state, lock), state, stop))


async def _with_free_ports(options: DaemonOptions, supervise: Callable[[], Awaitable[None]]) -> None:
    """Run `supervise`. If another process took a chosen port meanwhile, run it again: it chooses other ports."""
    for race in range(1, _PORT_RACES + 1):
        try:
            return await supervise()
        except PortTakenError as error:
            if options.strict_ports or race == _PORT_RACES:
                raise
            log.warning("%s; choosing another", error.message)
    return None


async def _supervise(members: list[MemberProgram], state: StateFile, stop: asyncio.Event) -> None:
    def announce(phase: GroupPhase, children: tuple[ChildState, ...]) -> None:
        if phase is GroupPhase.RUNNING and state.state.phase is not GroupPhase.RUNNING:
            log.info("everything runs; look at %s", state.state.ui_url or "the web UI of your cluster")
        state.update(phase=phase, children=children)

    await MemberGroup(members, announce).run(stop)


def _external_members(home: Home, options: DaemonOptions, state: StateFile) -> list[MemberProgram]:
    state.update(temporal_address=options.address, namespace=options.namespace, notes=())
    return _own_members(home, options, dict(os.environ), state)


def _embedded_members(home: Home, options: DaemonOptions, state: StateFile, lock: FileLock) -> list[MemberProgram]:
    """Choose the ports, publish them in the state, and build the members with them."""
    front = choose_port(options.temporal_port, "Temporal", strict=options.strict_ports)
    ui, moved = web_ui.hidden_listener(), front.note("Temporal")
    notes = tuple(note for note in (moved, _NO_UI_PORT if options.ui_port is not None else "") if note)
    for note in notes:
        log.warning("%s", note)
    address = f"{LOOPBACK}:{front.port}"
    state.update(temporal_address=address, namespace=options.namespace, ui_url=None, notes=notes)
    handed = {**own_environment(), "SERVICE_TEMPORAL_ADDRESS": address}
    ours = _own_members(home, options, handed, state, avoid={front.port}, ui=ui)
    if options.bridge_command:
        state.update(ui_url=f"{options.bridge_url or state.state.bridge_url}{web_ui.PATH}")
    return [_server(home, options, front.port, ui, lock), *ours]


def _own_members(
    home: Home,
    options: DaemonOptions,
    env: dict[str, str],
    state: StateFile,
    avoid: Collection[int] = (),
    ui: Listener | None = None,
) -> list[MemberProgram]:
    """Build the members that run the service's own programs. Each secret goes only to the member that needs it (ruling
    L2), and so does the address of the embedded server's web UI.
    """
    token, webhook = options.github_secret, options.webhook_secret
    plain = _without_secrets(env, options)
    given = {name: {**plain, name: os.environ[name]} if name in os.environ else plain for name in (token, webhook)}
    proxied = {web_ui.VARIABLE: str(ui)} if ui else {}
    worker = _program(home, "worker", options.worker_command, plain, ready=home.worker_ready, umask=-1)
    return [
        _polling(worker, options, ui, options.worker_queues),
        *_bridge(home, options, given[webhook] | proxied, state, avoid),
        *(_polling(member, options, ui, options.github_queues) for member in _github(home, options, given[token])),
        *_commands(home, options, plain),
    ]


def _polling(
    member: MemberProgram, options: DaemonOptions, ui: Listener | None, queues: tuple[Queue, ...]
) -> MemberProgram:
    """Return the member with a check that it polls the embedded server again after a restart of the server."""
    if ui is None:
        return member

    async def rejoins(pid: int) -> None:
        await until(partial(polls, ui, options.namespace, queues, pid), _REJOIN_PAUSE)

    return replace(member, works_with=_SERVER, rejoins=rejoins)


def _without_secrets(env: dict[str, str], options: DaemonOptions) -> dict[str, str]:
    secrets = {options.github_secret, options.webhook_secret}
    return {name: value for name, value in env.items() if name not in secrets}


def _server(home: Home, options: DaemonOptions, port: int, ui: Listener, lock: FileLock) -> MemberProgram:
    program = find_program()

    async def ready(pid: int) -> None:
        lock.mark(pid)
        await server_answers(ui, options.namespace)
        await prepare_namespace(
            f"{LOOPBACK}:{port}",
            ui,
            namespace=options.namespace,
            search_attributes=options.search_attributes,
            program=program,
        )

    return MemberProgram(
        name=_SERVER,
        argv=server_command(
            home,
            port,
            ui,
            namespace=options.namespace,
            search_attributes=options.search_attributes,
            program=program,
            encrypt=options.encrypt,
        ),
        env=_without_secrets(server_environment(), options),
        ready=ready,
        beat=partial(server_beat, ui, options.namespace),
        log=home.logs / "server.log",
        cwd=home.root,
        explain=partial(diagnose_server, home=home),
        inherit=(lock.fd,),
        umask=0o077,
    )


def _bridge(
    home: Home, options: DaemonOptions, env: dict[str, str], state: StateFile, avoid: Collection[int] = ()
) -> list[MemberProgram]:
    """Build the HTTP bridge's member if the bridge is enabled, on its port or the next free one."""
    if not options.bridge_command:
        return []
    host = options.bridge_addr
    port = choose_port(options.bridge_port, "the bridge", strict=options.strict_ports, avoid=avoid, host=host)
    if note := port.note("the bridge"):
        log.warning("%s", note)
        state.update(notes=(*state.state.notes, note))
    where = f"[{host}]:{port.port}" if ":" in host else f"{host}:{port.port}"
    state.update(bridge_url=f"http://{where}")
    argv = (*options.bridge_command, where)
    return [_program(home, "bridge", argv, env, ready=home.bridge_ready, explain=diagnose_bridge)]


def _github(home: Home, options: DaemonOptions, env: dict[str, str]) -> list[MemberProgram]:
    """Build the GitHub process's member if an account is configured."""
    argv = options.github_command
    return [_program(home, "github", argv, env, ready=home.github_ready)] if argv else []


def _commands(home: Home, options: DaemonOptions, env: dict[str, str]) -> list[MemberProgram]:
    """Build the member that runs typed commands. Its start is not awaited: until it is ready, each command runs in its
    own process.
    """
    home.commands_socket.unlink(missing_ok=True)
    argv = options.commands_command
    return [_program(home, "commands", argv, env, ready=None)] if argv else []


def _program(
    home: Home,
    name: str,
    argv: tuple[str, ...],
    env: dict[str, str],
    *,
    ready: Path | None,
    explain: Callable[[str], ServiceError | None] = diagnose_program,
    umask: int = 0o077,
) -> MemberProgram:
    """Build a member from one of the service's programs. It is ready once it wrote its pid to `ready`; without that
    file, at once.
    """
    if ready is not None:
        ready.unlink(missing_ok=True)

    async def works(pid: int) -> None:
        if ready is not None:
            await until(lambda: pid_of(ready) == pid)

    return MemberProgram(
        name=name,
        argv=argv,
        env={**env, "SERVICE_HOME": str(home.root), **importable()},
        ready=works,
        beat=partial(asyncio.to_thread, beat_of, ready) if ready is not None else None,
        log=home.logs / f"{name}.log",
        cwd=home.root,
        explain=explain,
        umask=umask,
    )


def importable() -> dict[str, str]:
    """Return a PYTHONPATH with absolute entries: a change of folder would break relative ones."""
    given = os.environ.get("PYTHONPATH")
    if not given:
        return {}
    return {"PYTHONPATH": os.pathsep.join(str(Path(part).absolute()) for part in given.split(os.pathsep) if part)}


@contextlib.contextmanager
def _server_lock(home: Home) -> Iterator[FileLock]:
    lock = FileLock.take(home.server_lock, wait=_LAST_ONE_ENDING)
    if lock is None:
        raise database_in_use(home, holder(home.server_lock))
    try:
        yield lock
    finally:
        lock.release()


@contextlib.contextmanager
def _stop_signals() -> Iterator[asyncio.Event]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
