"""Programs in the settings and on this machine: found or not, logged in or not, configured or not."""

from pathlib import Path

import pytest

from activities.agents.claude import Claude
from activities.agents.codex import Codex
from activities.agents.kimi import Kimi
from activities.agents.registry import ADAPTERS, adapters_of, reader_of
from activities.agents.shell import Shell
from activities.runtimes.known_runtimes import CLAUDE, CODEX, KIMI, PROGRAMS, RUNTIMES, runtime_of
from activities.runtimes.programs import Program, find, is_logged_in, version_in
from activities.settings.model import Settings
from workflows.contract.models import Runtime
from workflows.policy.preflight import PROGRAM_NAMES, RUNTIME_NAMES


def a_program(folder: Path, name: str) -> dict[str, str]:
    """Return an environment whose PATH has a program of this name."""
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return {"PATH": str(folder), "HOME": str(folder / "h")}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_a_program_is_found_by_its_name_or_by_the_settings_command(tmp_path: Path, program: Program) -> None:
    environ = a_program(tmp_path, program.name)
    assert find(program, (), environ) == str(tmp_path / program.name)
    assert find(program, ("no-such-program", "x"), environ) is None
    assert find(program, (str(tmp_path / program.name),), {"PATH": ""}) == str(tmp_path / program.name)


@pytest.mark.parametrize(
    ("program", "file"),
    [(CODEX, ".codex/auth.json"), (CLAUDE, ".claude/.credentials.json"), (KIMI, ".kimi-code/credentials/kimi.json")],
    ids=["codex", "claude", "kimi"],
)
def test_a_login_is_known_by_its_file_or_its_variable(tmp_path: Path, program: Program, file: str) -> None:
    environ = {"HOME": str(tmp_path)}
    assert is_logged_in(program, (), environ, platform="linux") is False
    assert is_logged_in(program, (), environ, platform="darwin") is None, "a key chain may keep it"
    assert is_logged_in(program, ("MINE",), environ | {"MINE": "x"}, platform="linux") is None
    assert is_logged_in(program, (), environ | {program.keys[0]: "k"}, platform="linux") is True
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("{}")
    assert is_logged_in(program, (), environ, platform="linux") is True
    moved = {program.home_variable: str(tmp_path / "elsewhere")}
    assert is_logged_in(program, (), environ | moved, platform="linux") is False


def test_a_provider_of_the_users_own_may_need_no_login(tmp_path: Path) -> None:
    (tmp_path / ".kimi-code").mkdir()
    (tmp_path / ".kimi-code" / "config.toml").write_text('[providers.x]\napi_key = "k"\n')
    assert is_logged_in(KIMI, (), {"HOME": str(tmp_path)}, platform="linux") is None


@pytest.mark.parametrize(
    ("program", "file", "text", "known"),
    [
        (CODEX, ".codex/config.toml", 'model = "m"\n', False),
        (CODEX, ".codex/config.toml", '# model_provider = "mine"\n', False),
        (CODEX, ".codex/config.toml", 'model_provider = "mine"\n', None),
        (CODEX, ".codex/config.toml", "cli_auth_credentials_store = 'keyring'\n", None),
        (KIMI, ".kimi-code/config.toml", '[providers.x]\napi_key = ""\n', False),
        (CLAUDE, ".claude/settings.json", '{"model": "opus"}', False),
        (CLAUDE, ".claude/settings.json", '{"apiKeyHelper": "pass show it"}', None),
        (CLAUDE, ".claude/settings.json", '{"env": {"ANTHROPIC_AUTH_TOKEN": "t"}}', None),
        (CLAUDE, ".claude.json", '{"primaryApiKey": "k"}', None),
    ],
)
def test_the_programs_own_settings_may_name_another_way_in(
    tmp_path: Path, program: Program, file: str, text: str, known: bool | None
) -> None:
    (tmp_path / program.home_folder).mkdir()
    (tmp_path / file).write_text(text)
    assert is_logged_in(program, (), {"HOME": str(tmp_path)}, platform="linux") is known


@pytest.mark.parametrize(
    ("started_as", "known"),
    [
        ((), False),
        (("codex",), False),
        (("/opt/bin/codex", "-c", "model_reasoning_effort=high"), False),
        (("/opt/bin/my-codex",), None),
        (("codex", "-c", "model_provider=mine"), None),
        (("codex", "--oss"), None),
        (("codex", "-p", "work"), None),
    ],
)
def test_a_command_of_the_settings_may_bring_its_login(
    tmp_path: Path, started_as: tuple[str, ...], known: bool | None
) -> None:
    answer = is_logged_in(CODEX, (), {"HOME": str(tmp_path)}, started_as=started_as, platform="linux")
    assert answer is known


@pytest.mark.parametrize(
    ("printed", "version"),
    [("codex-cli 0.169.0", (0, 169, 0)), ("2.1.329 (Claude Code)", (2, 1, 329)), ("2.1.0\n", (2, 1, 0)), ("?", None)],
)
def test_versions_are_read_as_printed(printed: str, version: tuple[int, int, int] | None) -> None:
    assert version_in(printed) == version


def test_each_runtime_has_its_own_program_unless_the_settings_say_otherwise() -> None:
    adapters = adapters_of(Settings(), {})
    assert [type(adapters[name]) for name in ("runtime_a", "runtime_b", "runtime_c", "shell")] == [
        Codex,
        Claude,
        Kimi,
        Shell,
    ]
    sections = {"runtime_a": {"adapter": "claude"}, "runtime_c": {"adapter": "script", "command": ["x"]}}
    other = adapters_of(Settings.model_validate({"runtimes": sections}), {})
    assert [type(other[name]) for name in ("runtime_a", "runtime_b", "runtime_c")] == [Claude, Claude, Shell]


@pytest.mark.ruling("spec:ephemeral.runtime")
def test_any_program_that_is_found_makes_its_runtime_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Settings().configured_runtimes == ()
    named = Settings.model_validate({"runtimes": {"runtime_a": {"default_model": "m"}, "shell": {"env": ["X"]}}})
    assert named.configured_runtimes == (), "a default model drives nothing"
    monkeypatch.setenv("PATH", a_program(tmp_path, "claude")["PATH"])
    assert Settings().configured_runtimes == ("runtime_b",)
    sections = {"runtime_c": {"adapter": "script", "command": ["x"]}, "runtime_a": {"command": ["/opt/codex"]}}
    assert Settings.model_validate({"runtimes": sections}).configured_runtimes == (
        "runtime_a",
        "runtime_b",
        "runtime_c",
    )


@pytest.mark.parametrize(
    ("name", "section", "sentence"),
    [
        ("shell", {"adapter": "codex"}, "shell has no adapter"),
        ("runtime_a", {"adapter": "script"}, "adapter script needs a command"),
        ("runtime_a", {"adapter": "script", "command": ["x"], "arguments": ["y"]}, "takes no arguments"),
        ("runtime_a", {"adapter": "gemini"}, "'codex', 'claude', .* or 'script'"),
        ("runtime_a", {"rate_limit_wait": 5}, "a duration is text"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, section: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Settings.model_validate({"runtimes": {name: section}})


def test_the_table_has_every_runtime_that_the_contract_names_and_an_adapter_for_every_program() -> None:
    assert set(RUNTIMES) == {*(each.value for each in Runtime), "shell"} == RUNTIME_NAMES
    assert set(ADAPTERS) == set(PROGRAMS) == PROGRAM_NAMES
    assert all(reader_of(Settings(), name) for name in RUNTIMES)
    assert [runtime_of(name) for name in PROGRAMS] == [name for name, row in RUNTIMES.items() if row.program]


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/usr/lib/node_modules/@openai/codex/bin/codex.js", "npm install -g @openai/codex@latest"),
        ("/home/ann/.local/share/uv/tools/codex-cli/bin/codex", "uv tool upgrade codex-cli"),
        ("/opt/homebrew/Cellar/codex/1.2.3/bin/codex", "brew upgrade codex"),
    ],
)
def test_an_update_is_by_what_installed_the_program(path: str, command: str) -> None:
    assert CODEX.update(path) == command
