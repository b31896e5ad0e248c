"""Adding the service to other tools: a token of its own, an entry in their configuration, once (ruling S5)."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from activities.settings import ready
from activities.settings.home import Home
from bridge.machine import tokens_file
from bridge.operations.access import mcp_clients
from bridge.operations.health import doctor
from bridge.operations.health.findings import Level
from bridge.operations.service import Service
from tests.bridge.operations.access.hosts import host
from workflows.model.errors import NotFoundError, RefusedError, UsageError

pytestmark = pytest.mark.ruling("S5")
PROGRAM = """#!/bin/sh
echo "$@" >> "$HOME/calls"
[ "$2" = add ] || exit 0
mkdir -p "$HOME/.codex"
printf '[mcp_servers.service]\\ncommand = "x"\\n' > "$HOME/.codex/config.toml"
printf '{"mcpServers": {"service": {}}}' > "$HOME/.claude.json"
"""
"""A program that takes the calls of Claude and Codex, and writes what they would."""

CODEX = '[mcp_servers.service]\ncommand = "service"\n\n[mcp_servers.service.env]\nSERVICE_HOME = "HOME"\n'
CLAUDE = '{"mcpServers": {"service": {"type": "http", "url": "http://127.0.0.1:8791/mcp"}}}'


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    made = Service(home)
    yield made
    made.store.dispose()


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a person's home with the two programs, and no other configuration."""
    home = tmp_path / "person"
    (home / "bin").mkdir(parents=True)
    for name in ("claude", "codex"):
        (home / "bin" / name).write_text(PROGRAM)
        (home / "bin" / name).chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "KIMI_CODE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return home


def test_a_running_bridge_is_called_once_so_that_the_first_call_of_the_client_is_quick(
    service: Service, person: Path
) -> None:
    calls: list[str | None] = []

    class Bridge(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            calls.append(self.headers["Authorization"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Bridge) as bridge:
        threading.Thread(target=bridge.serve_forever, daemon=True).start()
        service.home.config.write_text(f"[bridge]\nport = {bridge.server_port}\n")
        mcp_clients.add(Service(service.home), "kimi", None)
        bridge.shutdown()
    entry = json.loads((person / ".kimi-code" / "mcp.json").read_text())["mcpServers"]["service"]
    assert calls == [entry["headers"]["Authorization"]]


@pytest.mark.parametrize("client", mcp_clients.CLIENTS)
def test_twice_changes_nothing_and_away_leaves_nothing(service: Service, person: Path, client: str) -> None:
    first = mcp_clients.add(service, client, None)
    assert (first.changed, first.scope) == (True, "ask")
    assert Path(first.where).is_relative_to(person)
    [token] = tokens_file.every(service.home)
    assert not mcp_clients.add(service, client, None).changed
    assert tokens_file.every(service.home) == (token,)
    [state] = mcp_clients.every(service)
    assert (state.client, state.scope, state.configured) == (client, "ask", True)
    mcp_clients.remove(service, client)
    assert mcp_clients.every(service) == []
    with pytest.raises(NotFoundError):
        mcp_clients.remove(service, client)


@pytest.mark.parametrize(("client", "file"), [("cursor", ".cursor/mcp.json"), ("kimi", ".kimi-code/mcp.json")])
def test_other_servers_of_a_file_stay(service: Service, person: Path, client: str, file: str) -> None:
    path = person / file
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"other": {"url": "x"}}, "theme": "dark"}')
    mcp_clients.add(service, client, "act")
    written = json.loads(path.read_text())
    assert written["mcpServers"]["other"] == {"url": "x"}
    assert written["theme"] == "dark"
    secret = written["mcpServers"]["service"]["headers"]["Authorization"].removeprefix("Bearer ")
    named = tokens_file.NamedTokens(service.home).find(secret.encode())
    assert named is not None
    assert (named.name, named.scope) == (f"mcp-{client}", "act")
    assert path.stat().st_mode & 0o077 == 0
    mcp_clients.remove(service, client)
    assert json.loads(path.read_text()) == {"mcpServers": {"other": {"url": "x"}}, "theme": "dark"}


@pytest.mark.parametrize("content", ["{ // a comment\n}", "[]", '{"mcpServers": 3}'])
def test_a_file_that_is_no_plain_json_stays_as_it_is(service: Service, person: Path, content: str) -> None:
    path = person / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(RefusedError) as refused:
        mcp_clients.add(service, "cursor", None)
    assert refused.value.hint == "service mcp add cursor --print"
    assert path.read_text() == content
    assert tokens_file.every(service.home) == ()


def test_an_entry_that_was_taken_out_by_hand_is_put_back_with_a_new_token(service: Service, person: Path) -> None:
    mcp_clients.add(service, "cursor", None)
    [before] = tokens_file.every(service.home)
    (person / ".cursor" / "mcp.json").unlink()
    assert [state.configured for state in mcp_clients.every(service)] == [False]
    assert mcp_clients.add(service, "cursor", None).changed
    [after] = tokens_file.every(service.home)
    assert after.digest != before.digest


@pytest.mark.parametrize("client", ["cursor", "claude", "codex"])
def test_a_list_says_whose_entry_is_gone_or_leads_elsewhere(service: Service, person: Path, client: str) -> None:
    if client == "cursor":
        mcp_clients.add(service, client, None)
    else:  # what their own commands write
        tokens_file.add(service.home, f"mcp-{client}", "ask")
        (person / ".codex").mkdir()
        (person / ".codex" / "config.toml").write_text(CODEX.replace("HOME", str(service.home.root)))
        (person / ".claude.json").write_text(CLAUDE)
    [state] = mcp_clients.every(service)
    assert (state.client, state.configured, state.reaches) == (client, True, True)
    files = {"cursor": ".cursor/mcp.json", "claude": ".claude.json", "codex": ".codex/config.toml"}
    path = person / files[client]
    path.write_text(path.read_text().replace("8791", "9999").replace(str(service.home.root), "/elsewhere"))
    [moved] = mcp_clients.every(service)
    assert (moved.configured, moved.reaches) == (True, False)
    path.unlink()
    [gone] = mcp_clients.every(service)
    assert (gone.configured, gone.reaches) == (False, False)


def test_codex_waits_for_a_server_that_starts_slowly(service: Service, person: Path) -> None:
    mcp_clients.add(service, "codex", None)
    assert "required = true" in (person / ".codex" / "config.toml").read_text()
    call = (person / "calls").read_text()
    assert f"SERVICE_HOME={service.home.root}" in call
    assert call.rstrip().endswith("/service mcp")


def test_a_program_that_is_missing_or_fails_leaves_no_token(
    service: Service, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (person / "bin" / "claude").write_text("#!/bin/sh\necho no such option >&2\nexit 1\n")
    with pytest.raises(RefusedError, match="claude mcp failed: no such option"):
        mcp_clients.add(service, "claude", None)
    monkeypatch.setenv("PATH", str(person))
    with pytest.raises(NotFoundError) as missing:
        mcp_clients.add(service, "codex", None)
    assert missing.value.hint == "service mcp add codex --print"
    assert tokens_file.every(service.home) == ()


def test_the_entry_can_be_put_in_by_hand(service: Service, person: Path) -> None:
    added = mcp_clients.add(service, "vscode", None, by_hand=True)
    entry = json.loads(added.entry)["servers"]["service"]
    assert (entry["type"], entry["url"]) == ("http", "http://127.0.0.1:8791/mcp")
    assert not (person / ".config").exists()


def test_another_scope_and_an_unknown_tool_are_refused_in_words(service: Service, person: Path) -> None:
    mcp_clients.add(service, "cursor", "read")
    with pytest.raises(RefusedError, match="was added with the scope read"):
        mcp_clients.add(service, "cursor", "act")
    with pytest.raises(UsageError, match="use one of claude, codex"):
        mcp_clients.add(service, "cursr", None)


@pytest.mark.ruling("S5", "engine:doctor")
def test_doctor_has_a_line_for_each_tool(service: Service, person: Path) -> None:
    assert not [*doctor.tools(service)]
    for client, scope in (("cursor", "read"), ("kimi", "ask"), ("vscode", "act")):
        mcp_clients.add(service, client, scope)
    (person / ".cursor" / "mcp.json").unlink()
    moved = person / ".kimi-code" / "mcp.json"
    moved.write_text(moved.read_text().replace("8791", "9999"))
    gone, elsewhere, well = doctor.tools(service)
    assert (gone.about, gone.level, elsewhere.level) == ("mcp cursor", Level.WARNING, Level.WARNING)
    assert gone.fix == "service mcp remove cursor && service mcp add cursor --scope read"
    assert "another address" in elsewhere.says
    assert (well.about, well.level, well.fix) == ("mcp vscode", Level.OK, "")
    assert "scope act" in well.says


@pytest.mark.ruling("S5", "engine:doctor")
def test_an_entry_leads_to_the_port_on_which_this_service_listens_though_another_holds_its_own(
    service: Service, person: Path
) -> None:
    mcp_clients.add(service, "cursor", None)
    ready.say(service.home.bridge_ready, service.reading.in_use(), "127.0.0.1:8792")  # 8791 was taken
    [elsewhere] = doctor.tools(service)
    assert elsewhere.level == Level.WARNING
    assert "another address" in elsewhere.says
    mcp_clients.remove(service, "cursor")
    mcp_clients.add(service, "cursor", None)
    assert "http://127.0.0.1:8792/mcp" in (person / ".cursor" / "mcp.json").read_text()
    [well] = doctor.tools(service)
    assert well.level == Level.OK


@pytest.mark.ruling("Q10", "S5")
def test_hosts_that_share_their_tokens_have_a_client_each(tmp_path: Path, person: Path) -> None:
    one, two = host(tmp_path, "one"), host(tmp_path, "two")
    mcp_clients.add(one, "cursor", "act")
    assert mcp_clients.every(two) == []
    (person / ".cursor" / "mcp.json").rename(person / "of-one")
    mcp_clients.add(two, "cursor", None)
    assert [state.scope for state in mcp_clients.every(one)] == ["act"]
    mcp_clients.remove(two, "cursor")
    assert [state.client for state in mcp_clients.every(one)] == ["cursor"]
