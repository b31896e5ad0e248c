"""`service runtime check`: the program of each runtime, found without calling a model."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.runtimes.known_runtimes import CLAUDE
from activities.settings.home import Home
from bridge.operations.health import doctor, runtimes
from bridge.operations.health.findings import Level
from bridge.operations.health.runtimes import RuntimeStatus
from bridge.operations.service import Service
from cli.main import main

pytestmark = pytest.mark.ruling("engine:doctor")

Install = Callable[[str], Path]
GOOD = f"echo {'.'.join(map(str, CLAUDE.minimum))}"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a machine without agent programs, and a function that installs a `claude` with a given behaviour."""
    for folder in ("bin", "user"):
        (tmp_path / folder).mkdir()
    for name in CLAUDE.passes:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "user" / ".claude"))

    def build(script: str) -> Path:
        program = tmp_path / "bin" / "claude"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        return program

    return build


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a key, which counts as a login."""
    made_up = "sk-ant-api03-" + "a1B2" * 20
    monkeypatch.setenv("ANTHROPIC_API_KEY", made_up)
    return made_up


def seen(home: Home) -> RuntimeStatus:
    (runtime,) = runtimes.check_runtimes(Service(home), "runtime_b")
    return runtime


def test_found_new_enough_and_logged_in_it_works(home: Home, install: Install, key: str) -> None:
    program = install(GOOD)
    runtime = seen(home)
    assert (runtime.works, runtime.logged_in, runtime.fix, runtime.path) == (True, True, "", str(program))
    assert runtime.version == ".".join(map(str, CLAUDE.minimum))


def test_what_is_missing_says_how_to_install_it(home: Home, install: Install) -> None:
    runtime = seen(home)
    assert (runtime.works, runtime.fix) == (False, CLAUDE.install)


def test_without_a_login_it_says_how_to_log_in(home: Home, install: Install) -> None:
    install(GOOD)
    home.config.write_text("")
    runtime = seen(home)
    assert (runtime.works, runtime.logged_in, runtime.fix) == (False, False, CLAUDE.way_in)


def test_an_old_one_works_perhaps_and_says_how_to_update(home: Home, install: Install, key: str) -> None:
    install("echo 0.0.1")
    runtime = seen(home)
    assert (runtime.works, runtime.version, runtime.fix) == (True, "0.0.1", f"{CLAUDE.install}@latest")
    assert "older than" in runtime.says


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'SyntaxError: no such thing' >&2; exit 1", "SyntaxError: no such thing"),
        ("exit 3", "exit status 3"),
        ("exec sleep 60", "no answer in 0.5 s"),
        ("echo key=$ANTHROPIC_API_KEY >&2; exit 1", "[redacted]"),
    ],
)
def test_one_that_cannot_start_says_why(
    home: Home, install: Install, key: str, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setattr(runtimes, "SECONDS", 0.5 if "sleep" in script else 20.0)
    install(script)
    runtime = seen(home)
    assert not runtime.works
    assert words in runtime.says
    assert key not in runtime.says


def test_it_is_asked_with_the_environment_an_agent_gets(
    home: Home, install: Install, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOT_FOR_AGENTS", "1")
    monkeypatch.setenv("GRANTED", "1")
    home.config.write_text('[runtimes.runtime_b]\nenv = ["GRANTED"]\n')
    install(f"env > {tmp_path / 'env'}; {GOOD}")
    assert seen(home).works
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert {"GRANTED", "PATH", "HOME", "ANTHROPIC_API_KEY"} <= names
    assert not names & {"NOT_FOR_AGENTS", "SERVICE_HOME"}


def test_one_is_enough(home: Home, install: Install, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "check"]) == 1
    assert f"fix: {CLAUDE.install}" in capsys.readouterr().out
    warnings = [found.about for found in doctor.examine(Service(home)) if found.level is Level.WARNING]
    assert "runtimes" in warnings
    install(GOOD)
    assert main(["runtime", "check", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["any_works"] is True
    assert [runtime["works"] for runtime in answer["runtimes"]] == [False, True, False, True]
    assert main(["runtime", "check", "runtime_a"]) == 1
    assert main(["runtime", "list"]) == 0
    assert "runtime_b  claude" in capsys.readouterr().out
    warnings = [found.about for found in doctor.examine(Service(home)) if found.level is Level.WARNING]
    assert not [about for about in warnings if about.startswith("runtime")]


@pytest.mark.parametrize(("command", "works"), [("sh", True), ("no-such-script", False)])
def test_a_script_in_a_runtimes_place_only_has_to_be_there(home: Home, command: str, works: bool) -> None:
    home.config.write_text(f'[runtimes.runtime_a]\nadapter = "script"\ncommand = ["{command}"]\n')
    (runtime,) = runtimes.check_runtimes(Service(home), "runtime_a")
    assert (runtime.program, runtime.works, bool(runtime.fix)) == ("script", works, not works)


def test_an_unknown_runtime_is_named(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "check", "nonsense"]) == 4
    assert "no runtime nonsense; the runtimes are codex" in capsys.readouterr().err


SANDBOX = """
if [ "$1" = --version ]; then echo 0.169.0; exit; fi
while [ "$1" != -- ]; do [ "$1" = sandbox_mode=workspace-write ] && held=yes; shift; done
shift
"""


@pytest.mark.ruling("P5")
@pytest.mark.parametrize("box", ["auto", "none"])
def test_a_check_builds_under_the_policy_that_checks_get(home: Home, install: Install, key: str, box: str) -> None:
    install(GOOD)
    home.config.write_text(f'[runtimes.runtime_b]\nbox = "{box}"\n')
    before = set(home.root.iterdir())
    (runtime,) = runtimes.check_runtimes(Service(home), "runtime_b", build=True)
    assert runtime.checks
    assert (runtime.checks.policy, runtime.checks.problem) == ("danger-full-access", "")
    assert {"git", "python3"} <= set(runtime.checks.tools)
    assert set(home.root.iterdir()) == before, "nothing of it is left"


@pytest.mark.ruling("P5")
@pytest.mark.parametrize(
    ("script", "problem"), [('exec "$@"', ""), ("echo 'no sandbox here' >&2; exit 3", "no sandbox here")]
)
def test_codex_is_told_to_run_the_build_in_its_own_sandbox(
    home: Home, install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, problem: str
) -> None:
    install(f'{SANDBOX}[ "$held" ] || exit 4\n{script}').rename(tmp_path / "bin" / "codex")
    home.config.write_text('[runtimes.runtime_a]\nbox = "none"\n')
    (runtime,) = runtimes.check_runtimes(Service(home), "runtime_a", build=True)
    assert runtime.checks
    assert (runtime.checks.policy, runtime.checks.problem) == ("workspace-write", problem)
    main(["runtime", "check", "runtime_a"])
    printed = " ".join(capsys.readouterr().out.split())
    wanted = "nothing can be built: no sandbox here fix: service doctor" if problem else "ran what it wrote (none)"
    assert wanted in printed, printed


def test_a_list_of_runtimes_builds_nothing(home: Home, install: Install, key: str) -> None:
    install(GOOD)
    assert seen(home).checks is None


@pytest.mark.ruling("N2")
def test_a_login_that_expires_is_said_with_the_moment_and_who_renews_it(home: Home, install: Install) -> None:
    program = install(GOOD)
    path = program.parent.parent / "user" / ".claude" / ".credentials.json"
    path.parent.mkdir()
    for expires, says in ((4_000_000_000_000, "logged in until 2096-"), (1, "logged in; its login expired at 1970-")):
        path.write_text(json.dumps({"claudeAiOauth": {"refreshToken": "renews", "expiresAt": expires}}))
        runtime = seen(home)
        assert runtime.says.startswith(says)
        assert runtime.says.endswith("UTC (the service renews it)")
        home.config.write_text("[runtimes.claude]\nrenew_login = false\n")
        unrenewed = seen(home)
        assert unrenewed.says.endswith("UTC (to renew it, use claude)")
        assert unrenewed.fix == (CLAUDE.way_in if expires == 1 else "")
        home.config.write_text("")
