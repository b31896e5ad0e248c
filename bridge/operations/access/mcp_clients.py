"""Programs that use the service by MCP: each gets a token, and an entry in its own configuration (ruling S5)."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.agents.program_folder import OWN_SERVER
from activities.runs.regular_files import write_private
from activities.settings import ready
from bridge.machine.address import choose_address
from bridge.machine.token_scopes import TokenScope
from bridge.machine.tokens_file import LONGEST_NAME, NamedToken
from bridge.operations.access import tokens
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, RefusedError, UsageError, with_nearest

SERVER = OWN_SERVER
"""The name of the server in each client: its tools are called by it."""

TOKEN_VARIABLE = "SERVICE_MCP_TOKEN"  # noqa: S105
PREFIX = "mcp-"
"""Prefix of the tokens' names."""

COMMAND_SECONDS = 60
WAKE_SECONDS = 10
LONGEST_ENTRY = 1_000


@dataclass(frozen=True)
class Door:
    """What a client needs to reach the bridge."""

    url: str
    token: str
    home: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True)
class ClientState:
    """A client that was added: its token's scope, and whether its configuration still has the entry."""

    client: str
    scope: str
    made_at: float
    configured: bool
    """True also where the configuration can't be read."""
    reaches: bool
    """Whether the entry has this home's address; true also where the configuration can't be read."""

    @property
    def wrong(self) -> str:
        """Return what is wrong with its entry; empty if it is good."""
        if not self.configured:
            return "its entry is gone"
        return "" if self.reaches else "its entry has another address or another home"


@dataclass(frozen=True)
class Added:
    """The outcome of adding a client."""

    client: str
    scope: str
    changed: bool
    where: str
    """The file or the command that took the entry."""
    entry: str = ""
    """The entry, if it is to be put in by hand."""


class JsonClient:
    """A client with servers in a JSON file."""

    def __init__(self, path: Callable[[], Path], section: str, entry: Callable[[Door], dict[str, Any]]) -> None:
        self._path, self._section, self._entry = path, section, entry

    def show(self, door: Door) -> str:
        """Return the file's part with the entry."""
        return json.dumps({self._section: {SERVER: self._entry(door)}}, indent=2)

    def put(self, door: Door) -> str:
        """Write the entry, and return the file."""
        path, content = self._path(), self._read()
        content.setdefault(self._section, {})[SERVER] = self._entry(door)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps(content, indent=2) + "\n")
        return str(path)

    def take_out(self) -> None:
        """Remove the entry."""
        content = self._read()
        if content.get(self._section, {}).pop(SERVER, None) is not None:
            write_private(self._path(), json.dumps(content, indent=2) + "\n")

    def entry(self) -> str:
        """Return the entry as text; empty if there is none."""
        entry = self._read().get(self._section, {}).get(SERVER)
        return json.dumps(entry) if entry is not None else ""

    def _read(self) -> dict[str, Any]:
        path = self._path()
        try:
            content = json.loads(path.read_text() or "{}")
        except FileNotFoundError:
            return {}
        except ValueError:
            content = None
        if not isinstance(content, dict) or not isinstance(content.get(self._section, {}), dict):
            way = f"service mcp add {next(name for name, client in CLIENTS.items() if client is self)} --print"
            raise RefusedError(f"{path} is not plain JSON, and stays as it is", way)
        return content


class CommandClient:
    """A client with a command that adds servers."""

    def __init__(
        self,
        program: str,
        add: Callable[[Door], Sequence[str]],
        remove: Sequence[str],
        config: Callable[[], Path],
        mark: str,
        finish: Callable[[Path], None] = lambda _: None,
    ) -> None:
        self._program, self._add, self._remove = program, add, remove
        self._config, self._mark, self._finish = config, mark, finish

    def show(self, door: Door) -> str:
        """Return the command to type."""
        return shlex.join([self._program, *self._add(door)])

    def put(self, door: Door) -> str:
        """Run the client's command, and return the file that it wrote."""
        self.take_out()
        self._run(self._add(door))
        self._finish(self._config())
        return str(self._config())

    def take_out(self) -> None:
        """Remove the entry by the client's command, if there is one."""
        if self.entry():
            self._run(self._remove)

    def entry(self) -> str:
        """Return the entry as text, with what follows it; empty if there is none."""
        try:
            _, mark, rest = self._config().read_text(errors="replace").partition(self._mark)
        except FileNotFoundError:
            return ""
        return mark + rest[:LONGEST_ENTRY]

    def _run(self, words: Sequence[str]) -> None:
        path = shutil.which(self._program)
        if path is None:
            raise NotFoundError(
                f"{self._program} is not installed, or not on PATH", f"service mcp add {self._program} --print"
            )
        command = [path, *words]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise RefusedError(f"{self._program} mcp did not end within {COMMAND_SECONDS} s") from None
        if done.returncode:
            raise RefusedError(f"{self._program} mcp failed: {(done.stderr or done.stdout).strip()[-500:]}")


def _home(variable: str, folder: str, *below: str) -> Callable[[], Path]:
    return lambda: Path(os.environ.get(variable) or Path.home() / folder).joinpath(*below)


def _claude_config() -> Path:
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(folder, ".claude.json") if folder else Path.home() / ".claude.json"


def _require(path: Path) -> None:
    """Make Codex wait for the server: it drops one that starts slowly, without a word."""
    text = path.read_text()
    head = f"[mcp_servers.{SERVER}]\n"
    if "required" not in text.partition(head)[2].partition("\n[")[0]:
        write_private(path, text.replace(head, f"{head}required = true\n", 1))


def _remote(door: Door, **more: Any) -> dict[str, Any]:
    return more | {"url": door.url, "headers": door.headers}


CLIENTS: dict[str, JsonClient | CommandClient] = {
    "claude": CommandClient(
        "claude",
        lambda door: [
            *("mcp", "add", "--transport", "http", "--scope", "user", SERVER, door.url),
            *("--header", f"Authorization: Bearer {door.token}"),
        ],
        ("mcp", "remove", "--scope", "user", SERVER),
        _claude_config,
        f'"{SERVER}": {{',
    ),
    "codex": CommandClient(
        "codex",
        lambda door: [
            *("mcp", "add", SERVER, "--env", f"SERVICE_HOME={door.home}", "--env", f"{TOKEN_VARIABLE}={door.token}"),
            *("--", str(Path(sys.executable).with_name("service")), "mcp"),
        ],
        ("mcp", "remove", SERVER),
        _home("CODEX_HOME", ".codex", "config.toml"),
        f"[mcp_servers.{SERVER}]",
        _require,
    ),
    "kimi": JsonClient(_home("KIMI_CODE_HOME", ".kimi-code", "mcp.json"), "mcpServers", _remote),
    "opencode": JsonClient(
        _home("XDG_CONFIG_HOME", ".config", "opencode", "opencode.json"),
        "mcp",
        lambda door: _remote(door, type="remote", enabled=True),
    ),
    "cursor": JsonClient(lambda: Path.home() / ".cursor" / "mcp.json", "mcpServers", _remote),
    "vscode": JsonClient(
        _home("XDG_CONFIG_HOME", ".config", "Code", "User", "mcp.json"),
        "servers",
        lambda door: _remote(door, type="http"),
    ),
}


def add(service: Service, name: str, scope: str | None, *, by_hand: bool = False) -> Added:
    """Give a client a token, and put the server into its configuration; a repetition changes nothing."""
    client, token = _client(name), _token_name(service, name)
    known = next((known for known in tokens.every(service) if known.name == token), None)
    if known and scope not in (None, known.scope):
        raise RefusedError(f"{name} was added with the scope {known.scope}", f"service mcp remove {name}")
    if known and not by_hand and client.entry():
        return Added(name, known.scope, changed=False, where="")
    if known:  # its secret is not stored
        tokens.remove(service, token)
    given = known.scope if known else scope or TokenScope.ASK
    door = Door(_url(service), tokens.add(service, token, given), str(service.home.root))
    if by_hand:
        return Added(name, given, changed=True, where="", entry=client.show(door))
    try:
        where = client.put(door)
    except Exception:
        tokens.remove(service, token)
        raise
    _wake(door)
    return Added(name, given, changed=True, where=where)


def _wake(door: Door) -> None:
    """Let a running bridge import what the client's first call would wait for: Claude takes a server whose first answer
    is slow for one without tasks and forms.
    """
    import httpx

    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = door.headers | {"Accept": "application/json, text/event-stream"}
    with suppress(httpx.HTTPError):
        httpx.post(door.url, json=ping, headers=headers, timeout=WAKE_SECONDS, trust_env=False)


def remove(service: Service, name: str) -> None:
    """Revoke a client's token, and remove the server from its configuration."""
    client = _client(name)
    tokens.remove(service, _token_name(service, name))
    client.take_out()


def every(service: Service) -> list[ClientState]:
    """Return the clients that were added."""
    made = {token.name: token for token in tokens.every(service)}
    named = {name: made.get(_token_name(service, name)) for name in sorted(CLIENTS)}
    return [_state(service, name, token) for name, token in named.items() if token]


def _token_name(service: Service, client: str) -> str:
    """Return the name of a client's token. Hosts share their tokens, while each has entries of its own."""
    of_host = f"-{service.settings.host.lower()}" if service.settings.store.url else ""
    return f"{PREFIX}{client}{of_host}"[:LONGEST_NAME].rstrip("-._")


def _state(service: Service, name: str, token: NamedToken) -> ClientState:
    try:
        entry: str | None = CLIENTS[name].entry()
    except RefusedError:
        entry = None
    reaches = entry is None or any(json.dumps(place) in entry for place in (_url(service), str(service.home.root)))
    return ClientState(name, token.scope, token.made_at, entry != "", reaches)


def _url(service: Service) -> str:
    """Return the address of MCP: the port of the settings may be taken by another service."""
    set_to = choose_address(service.settings.bridge, None, allow_remote=True)
    return f"{ready.bridge_url(service.home) or f'http://{set_to}'}/mcp"


def _client(name: str) -> JsonClient | CommandClient:
    if name not in CLIENTS:
        error = UsageError(f"{name!r} is not a client that is known; use one of {', '.join(CLIENTS)}")
        raise with_nearest(error, name, CLIENTS)
    return CLIENTS[name]
