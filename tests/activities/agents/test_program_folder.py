"""A program's own folder: what a job has of the operator's, and how it follows the operator's login (ruling N2)."""

import json
import os
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.agents import program_folder
from activities.agents.adapter import Adapter, CannotLaunchError, ProgramCall
from activities.runtimes.known_runtimes import BY_ACP, PROGRAMS
from tests.activities.agents.recorded import a_call, a_run, adapter

pytestmark = pytest.mark.ruling("N2")

KNOWN = {**PROGRAMS, **BY_ACP}
LOGINS: dict[str, tuple[str, dict[str, Any]]] = {
    "codex": ("auth.json", {"tokens": {"access_token": "old", "refresh_token": "renews"}, "last_refresh": "then"}),
    "claude": (".credentials.json", {"claudeAiOauth": {"accessToken": "old", "refreshToken": "renews"}, "mcpOAuth": 1}),
    "kimi": (
        "credentials/kimi-code.json",
        {"access_token": "old", "refresh_token": "renews", "expires_at": 9_999_999_999},
    ),
    "opencode": ("opencode/auth.json", {"one": {"access": "old", "refresh": "renews"}, "other": {"key": "old"}}),
    "copilot": ("config.json", {"copilot_tokens": {"a host": "old"}}),
    "qwen": ("oauth_creds.json", {"access_token": "old", "refresh_token": "renews"}),
}
LEFT: dict[str, dict[str, Any]] = {
    "codex": {"tokens": {"access_token": "old", "refresh_token": ""}, "last_refresh": "then"},
    "claude": {"claudeAiOauth": {"accessToken": "old", "refreshToken": ""}},
    "kimi": {"access_token": "old", "refresh_token": "", "expires_at": 0},
    "opencode": {"one": {"access": "old", "refresh": ""}, "other": {"key": "old"}},
    "copilot": {"copilot_tokens": {"a host": "old"}},
    "qwen": {"access_token": "old", "refresh_token": ""},
}


def written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def of(folder: Path, program: str, **section: object) -> tuple[Adapter, ProgramCall]:
    environ = {"HOME": str(folder)}
    return adapter(program, environ, **section), a_call(folder, a_run(program))


@pytest.mark.parametrize("program", LOGINS)
def test_a_job_has_the_login_without_what_renews_it(tmp_path: Path, program: str) -> None:
    """A boxed program that renewed the login could not save what it got, and the operator's would be at its end."""
    name, login = LOGINS[program]
    theirs = written(tmp_path / KNOWN[program].home_folder / name, login)
    driver, call = of(tmp_path, program)
    launch = driver.launch(call)
    assert launch.env[KNOWN[program].home_variable] == str(call.home)
    assert json.loads((call.home / name).read_text()) == LEFT[program]
    assert json.loads(theirs.read_text()) == login


@pytest.mark.parametrize("program", LOGINS)
@pytest.mark.parametrize("renewed", ["new", "a longer token than the old one was"])
def test_the_login_of_a_running_program_follows_the_operator_s(tmp_path: Path, program: str, renewed: str) -> None:
    name, login = LOGINS[program]
    theirs = written(tmp_path / KNOWN[program].home_folder / name, login)
    driver, call = of(tmp_path, program)
    driver.launch(call)
    own = call.home / name
    before = own.stat()
    driver.follow_login(call)
    assert own.stat().st_mtime_ns == before.st_mtime_ns
    written(theirs.with_suffix(".new"), json.dumps(login).replace("old", renewed)).replace(theirs)
    driver.follow_login(call)
    assert json.loads(own.read_text()) == json.loads(json.dumps(LEFT[program]).replace("old", renewed))
    assert own.stat().st_ino == before.st_ino, "a box shows the file, not its name"
    theirs.write_text("{cut o")
    driver.follow_login(call)
    assert renewed in own.read_text()


def test_no_link_that_an_agent_left_is_written_through(tmp_path: Path) -> None:
    """Without a box a program may change its folder."""
    precious = written(tmp_path / "precious", "precious")
    written(tmp_path / ".codex/auth.json", LOGINS["codex"][1])
    written(tmp_path / ".codex/AGENTS.md", "indent with tabs")
    driver, call = of(tmp_path, "codex")
    driver.launch(call)
    for name in ("auth.json", "AGENTS.md"):
        (call.home / name).unlink()
        (call.home / name).symlink_to(precious)
    (call.home / "sessions").symlink_to(tmp_path)
    driver.follow_login(call)
    launch = driver.launch(call)
    assert precious.read_text() == "precious"
    assert not any(path.is_symlink() for path in call.home.iterdir())
    assert call.home / "auth.json" in launch.read


@pytest.mark.parametrize("program", KNOWN)
def test_sessions_stay_and_all_else_is_made_anew_or_removed(tmp_path: Path, program: str) -> None:
    driver, call = of(tmp_path, program)
    assert driver.only_sessions(call) is None, "it never ran"
    driver.launch(call)
    folders = [name for name in KNOWN[program].writes if "." not in name]
    for name in folders:
        written(call.home / name / "mine.jsonl", "mine")
    written(call.home / "memories/MEMORY.md", "obey")
    driver.launch(replace(call, runs=True))
    assert (call.home / "memories/MEMORY.md").exists(), "a program that runs keeps its folder"
    driver.launch(call)
    assert not (call.home / "memories").exists()
    rest = driver.only_sessions(call)
    assert rest
    assert program in BY_ACP or {path.name for path in rest.iterdir()} & {"config.toml", "settings.json"}
    assert sorted(path.name for path in call.home.iterdir()) == sorted(folders)
    assert all((call.home / name / "mine.jsonl").read_text() == "mine" for name in folders)


def settings(call: ProgramCall, name: str) -> dict[str, Any]:
    text = (call.home / name).read_text()
    return tomllib.loads(text) if name.endswith("toml") else json.loads(text)


SERVERS = {
    "one": {"command": "server", "required": True},
    "two": {"command": "server", "env": {"A-B": "x y"}},
}
TOML_SERVERS = """
[mcp_servers.one]
command = "server"
required = true
[mcp_servers.two]
command = "server"
env = {"A-B" = "x y"}
"""
NAMING = {
    "codex": (".codex/config.toml", TOML_SERVERS, "config.toml", "mcp_servers"),
    "claude": (".claude.json", {"mcpServers": SERVERS}, "mcp.json", "mcpServers"),
    "kimi": (".kimi-code/mcp.json", {"mcpServers": SERVERS}, "mcp.json", "mcpServers"),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_job_has_the_servers_that_the_settings_name_and_no_other(tmp_path: Path, program: str) -> None:
    """One with `required = true` failed every job of codex."""
    path, content, name, key = NAMING[program]
    written(tmp_path / path, content)
    driver, call = of(tmp_path, program)
    launch = driver.launch(call)
    assert not any("server" in each.read_text() for each in call.home.iterdir())
    assert "--mcp-config" not in launch.argv
    driver, call = of(tmp_path, program, mcp_servers=["two"])
    launch = driver.launch(call)
    assert settings(call, name)[key] == {"two": SERVERS["two"]}
    if program == "claude":
        assert launch.argv[launch.argv.index("--mcp-config") + 1] == str(call.home / "mcp.json")
    driver, call = of(tmp_path, program, mcp_servers=["two", "three"])
    with pytest.raises(CannotLaunchError, match="names three") as refused:
        driver.launch(call)
    assert str(tmp_path / path) in refused.value.message


@pytest.mark.ruling("S4")
def test_no_job_has_the_service_s_own_server_whatever_the_settings_name(tmp_path: Path) -> None:
    own = {"url": "http://127.0.0.1:8791/mcp", "headers": {"Authorization": "Bearer secret"}}
    path = tmp_path / "mcp.json"
    assert program_folder.chosen_servers({"service": own, **SERVERS}, ["two", "service"], "runtime_c", path) == {
        "two": SERVERS["two"]
    }


def test_codex_has_its_model_and_provider_and_nothing_that_starts_a_program_or_tells_of_folders(tmp_path: Path) -> None:
    users = """
model = "m"
model_provider = "own"
notify = ["notify-send"]
sandbox_mode = "danger-full-access"
profile = "fast"
[model_providers.own]
base_url = "https://llm.example/v1"
http_headers = { "X-Team" = "a \\"b\\"" }
[profiles.fast]
model = "f"
notify = ["x"]
[projects."/home/ann/secret"]
trust_level = "trusted"
[[hooks.Stop]]
command = "x"
[otel]
exporter = "x"
"""
    written(tmp_path / ".codex/config.toml", users)
    driver, call = of(tmp_path, "codex")
    driver.launch(call)
    assert settings(call, "config.toml") == {
        "model": "m",
        "model_provider": "own",
        "profile": "fast",
        "model_providers": {"own": {"base_url": "https://llm.example/v1", "http_headers": {"X-Team": 'a "b"'}}},
        "profiles": {"fast": {"model": "f"}},
    }


def test_claude_has_its_model_and_its_provider_s_variables_and_no_hook_and_no_history(tmp_path: Path) -> None:
    variables = {"ANTHROPIC_BASE_URL": "https://llm.example", "GITHUB_TOKEN": "x", "MINE": "y"}
    users = {"model": "opus", "hooks": {"Stop": []}, "env": variables, "enabledPlugins": {"a": True}}
    written(tmp_path / ".claude/settings.json", users | {"permissions": {"deny": ["WebFetch"]}})
    state = {"projects": {"/secret": {"history": ["x"]}}, "primaryApiKey": "k", "oauthAccount": {"a": 1}}
    written(tmp_path / ".claude.json", state)
    driver, call = of(tmp_path, "claude", env=["MINE"])
    launch = driver.launch(call)
    kept = {"ANTHROPIC_BASE_URL": "https://llm.example", "MINE": "y"}
    expected = {"model": "opus", "env": kept, "permissions": {"deny": ["WebFetch"]}}
    assert settings(call, "settings.json") == expected
    assert settings(call, ".claude.json") == {"primaryApiKey": "k", "oauthAccount": {"a": 1}}
    assert launch.env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] == "1"


def test_kimi_has_its_models_and_no_hook_but_the_service_s(tmp_path: Path) -> None:
    written(tmp_path / ".kimi-code/config.toml", 'default_model = "k"\nyolo = true\n[[hooks]]\nevent = "Stop"\n')
    driver, call = of(tmp_path, "kimi")
    driver.launch(call)
    config = settings(call, "config.toml")
    assert (config["default_model"], [each["event"] for each in config["hooks"]]) == (
        "k",
        ["PreToolUse", "UserPromptSubmit"],
    )
    assert "yolo" not in config


@pytest.mark.parametrize("program", PROGRAMS)
def test_settings_that_cannot_be_read_are_said_before_a_start_and_hold_up_no_running_program(
    tmp_path: Path, program: str
) -> None:
    name = "settings.json" if program == "claude" else "config.toml"
    path = written(tmp_path / KNOWN[program].home_folder / name, "{")
    driver, call = of(tmp_path, program)
    with pytest.raises(CannotLaunchError, match="cannot be read") as refused:
        driver.launch(call)
    assert str(path) in refused.value.message
    shutil.rmtree(call.home, ignore_errors=True)
    running = replace(call, runs=True)
    of_folder = [path for path in driver.launch(running).settings if path.is_relative_to(call.home)]
    assert of_folder == [], "as of one that an older release started"
    driver.follow_login(running)
    assert driver.only_sessions(running) is None


def test_instructions_are_copied_with_what_links_lead_to_and_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / ".claude"
    written(tmp_path / "dotfiles/style/SKILL.md", "indent with tabs")
    written(users / "skills/run/run.sh", "#!/bin/sh").chmod(0o500)
    (users / "skills/style").symlink_to(tmp_path / "dotfiles/style")
    (users / "skills/loop").symlink_to(users / "skills")
    (users / "skills/gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(users / "skills/pipe")
    driver, call = of(tmp_path, "claude")
    driver.launch(call)
    own = call.home / "skills"
    assert (own / "style/SKILL.md").read_text() == "indent with tabs"
    assert (own / "run/run.sh").stat().st_mode & 0o777 == 0o700
    assert not [path for path in own.rglob("*") if path.is_symlink()]
    assert not (own / "gone").exists()
    assert not (own / "pipe").exists()
    monkeypatch.setattr(program_folder, "MOST_BYTES", 10)
    with pytest.raises(CannotLaunchError, match="too much for each job"):
        driver.launch(call)
