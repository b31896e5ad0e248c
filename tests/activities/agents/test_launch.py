"""Launches of each program: by policy, in a new session and a resumed one."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from activities.agents import kimi_guard
from activities.agents.adapter import Launch
from tests.activities.agents.recorded import a_call, a_run, adapter
from workflows.contract.models import AutonomyPolicy
from workflows.contract.schema import strict_schema, tool_schema
from workflows.model.briefs import BudgetLine
from workflows.model.jobs import JobRun

AUTO, READ, WRITE, FULL = AutonomyPolicy
PROMPT = b"Do it."


def launched(folder: Path, program: str, policy: AutonomyPolicy = READ, session: str | None = None) -> Launch:
    return adapter(program).launch(a_call(folder, a_run(program, policy), session))


@pytest.mark.ruling("spec:ephemeral.read_only")
@pytest.mark.parametrize("session", [None, "s-1"])
@pytest.mark.parametrize(
    ("policy", "sandbox"),
    [(AUTO, "read-only"), (READ, "read-only"), (WRITE, "workspace-write"), (FULL, "danger-full-access")],
)
def test_codex(tmp_path: Path, policy: AutonomyPolicy, sandbox: str, session: str | None) -> None:
    launch = launched(tmp_path, "codex", policy, session)
    words = " ".join(launch.argv)
    assert words.startswith(f"codex exec --json -s {sandbox} ")
    assert words.endswith(" resume s-1 -" if session else " -")
    assert words.count("-s ") == 1, "resume takes no sandbox"
    assert ("sandbox_workspace_write.exclude_slash_tmp=true" in words) == (policy is WRITE)
    assert "shell_environment_policy.ignore_default_excludes=false" in words
    assert "allow_login_shell=false" in words
    assert "--disable plugins --disable apps" in words
    assert launch.stdin == PROMPT
    own = Path(launch.env["TMPDIR"])
    assert own.is_dir()
    assert own.is_relative_to(a_call(tmp_path, a_run("codex")).run_dir)


@pytest.mark.ruling("spec:ephemeral.read_only")
@pytest.mark.parametrize(
    ("policy", "mode"),
    [(AUTO, "dontAsk"), (READ, "dontAsk"), (WRITE, "acceptEdits"), (FULL, "bypassPermissions")],
)
def test_claude(tmp_path: Path, policy: AutonomyPolicy, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    launch = launched(tmp_path, "claude", policy)
    assert " ".join(launch.argv).startswith(
        f"claude --setting-sources user --strict-mcp-config --permission-mode {mode} --session-id "
    )
    assert launch.argv[-6:-1] == ("-p", "--output-format", "stream-json", "--verbose", "--json-schema")
    assert launch.stdin == PROMPT
    assert ("IS_SANDBOX" in launch.env) == (policy is FULL)
    again = launched(tmp_path, "claude", policy, "s-1")
    assert again.argv[6:8] == ("--resume", "s-1")
    assert (*again.argv[:6], *again.argv[8:]) == (*launch.argv[:6], *launch.argv[8:])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "IS_SANDBOX" not in launched(tmp_path, "claude", policy).env


def test_claudes_session_is_the_same_whenever_its_run_is_asked_about(tmp_path: Path) -> None:
    call = a_call(tmp_path, a_run("claude"))
    other = a_call(tmp_path / "other", a_run("claude"))
    first, again, elsewhere = (adapter("claude").launch(each).argv for each in (call, call, other))
    assert first == again != elsewhere


@pytest.mark.ruling("spec:ephemeral.read_only")
@pytest.mark.parametrize(("policy", "name"), [(AUTO, "read-only"), (READ, "read-only"), (WRITE, "workspace-write")])
def test_kimi_is_held_by_a_hook_in_its_folder(tmp_path: Path, policy: AutonomyPolicy, name: str) -> None:
    launch = launched(tmp_path, "kimi", policy, "s-1")
    assert launch.argv == ("kimi", "-S", "s-1", "-p", told_to_read(tmp_path), "--output-format", "stream-json")
    assert launch.stdin is None
    home = Path(launch.env["KIMI_CODE_HOME"])
    assert home == tmp_path / "home"
    hook, _ = tomllib.loads((home / "config.toml").read_text())["hooks"]
    assert shlex.split(hook["command"])[-4] == name
    assert (hook["event"], hook["matcher"]) == ("PreToolUse", "Write|Edit|Bash|Agent|AgentSwarm|mcp__.*")
    call = json.dumps({"tool_name": "Bash", "tool_input": {"command": "rm x"}})
    refused = subprocess.run(["sh", "-c", hook["command"]], input=call, text=True, env=launch.env, capture_output=True)
    assert (refused.returncode, "this job may" in refused.stderr) == (2, True)


def test_a_hook_of_kimis_that_cannot_run_refuses_too(tmp_path: Path) -> None:
    launch = launched(tmp_path, "kimi", WRITE)
    config = Path(launch.env["KIMI_CODE_HOME"]) / "config.toml"
    hook, _ = tomllib.loads(config.read_text())["hooks"]
    command = hook["command"].replace(sys.executable, "/no/python")
    refused = subprocess.run(["sh", "-c", command], input="{}", text=True, env=launch.env, capture_output=True)
    assert refused.returncode == kimi_guard.REFUSED


def test_kimi_with_full_access_has_a_hook_that_gives_it_its_prompt_and_none_that_refuses(tmp_path: Path) -> None:
    launch = launched(tmp_path, "kimi", FULL)
    assert launch.argv == ("kimi", "-p", told_to_read(tmp_path), "--output-format", "stream-json")
    home = Path(launch.env["KIMI_CODE_HOME"])
    (hook,) = tomllib.loads((home / "config.toml").read_text())["hooks"]
    assert hook["event"] == "UserPromptSubmit"


@pytest.mark.ruling("P7.given")
@pytest.mark.parametrize("policy", [READ, WRITE, FULL])
def test_a_hook_gives_kimi_its_prompt_whole_and_a_helper_of_its_agent_none(
    tmp_path: Path, policy: AutonomyPolicy
) -> None:
    """Kimi's Read tool would give the model only what that asks for, 100,000 characters at most by default."""
    prompt = "first line\n" + "é" * 200_000 + "\n\nlast line\n"
    call = a_call(tmp_path, a_run("kimi", policy), "s-1", prompt=prompt.encode())
    launch = adapter("kimi", {"HOME": str(tmp_path)}).launch(call)
    *_, hook = tomllib.loads((Path(launch.env["KIMI_CODE_HOME"]) / "config.toml").read_text())["hooks"]

    def given(submitted: str) -> str:
        event = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": [{"type": "text", "text": submitted}]})
        words = ["sh", "-c", hook["command"]]
        return subprocess.run(words, input=event, text=True, env=launch.env, capture_output=True).stdout

    assert given(launch.argv[launch.argv.index("-p") + 1]) == prompt
    assert given("Look for the callers of this function.") == ""


@pytest.mark.parametrize(
    ("policy", "call", "refused"),
    [
        ("read-only", {"tool_name": "Write", "tool_input": {"path": "a.py"}}, True),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": "a.py"}}, False),
        ("workspace-write", {"tool_name": "Edit", "tool_input": {"file_path": "{tree}/x/a.py"}}, False),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": "../a.py"}}, True),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": "/etc/passwd"}}, True),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": "out/a.py"}}, True),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": "~/a.py"}}, True),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": "~root/a.py"}}, True),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": ".git"}}, True),
        ("workspace-write", {"tool_name": "Write", "tool_input": {"path": ".gitignore"}}, False),
        ("workspace-write", {"tool_name": "Write", "tool_input": {}}, True),
        ("workspace-write", {"tool_name": "Bash", "tool_input": {"command": "ls"}}, True),
        ("workspace-write", {"tool_name": "Agent"}, True),
        ("workspace-write", [], True),
        ("nonsense", {"tool_name": "Write", "tool_input": {"path": "a.py"}}, True),
    ],
)
def test_the_hook_lets_only_edits_in_the_worktree_through(
    tmp_path: Path, policy: str, call: object, refused: bool
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "out").symlink_to(tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-S", kimi_guard.__file__, policy],
        input=json.dumps(call).replace("{tree}", str(tree)),
        text=True,
        env={kimi_guard.WORKTREE: str(tree)},
        capture_output=True,
    )
    assert (done.returncode, bool(done.stderr)) == (2 if refused else 0, refused)


def told_to_read(folder: Path) -> str:
    """Return the expected text in place of a prompt in the command line."""
    file = a_call(folder, a_run("kimi")).run_dir / "prompt.md"
    return (
        "Your instructions are the hook result before this line: do what they say. "
        f"If there is none, they are in the file {file}: read the whole of it first."
    )


@pytest.mark.ruling("N8")
@pytest.mark.parametrize("program", ["codex", "claude", "kimi"])
@pytest.mark.parametrize("session", [None, "s-1"])
def test_no_prompt_stands_in_a_command_line(tmp_path: Path, program: str, session: str | None) -> None:
    call = a_call(tmp_path, a_run(program), session, prompt=b"what nobody else may read")
    argv = adapter(program).launch(call).argv
    assert "nobody" not in " ".join(argv)
    if program == "kimi":
        file = call.run_dir / "prompt.md"
        assert file.read_bytes() == call.prompt
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert str(file) in argv[argv.index("-p") + 1]


@pytest.mark.ruling("S6")
def test_claude_gets_the_schema_of_what_its_job_may_end_with_in_every_session(tmp_path: Path) -> None:
    budget = BudgetLine(
        jobs=1,
        jobs_cap=9,
        depth=0,
        depth_cap=2,
        elapsed_seconds=0,
        wall_clock_seconds=9,
        tokens=0,
        token_budget=0,
        cost_usd=0,
        cost_budget_usd=0,
        width=5,
    )
    runs = {"lead": a_run("claude").model_copy(update={"budget": budget}), "leaf": leaf_of(a_run("claude"))}
    for session in (None, "s-1"):
        argv = {name: adapter("claude").launch(a_call(tmp_path, run, session)).argv for name, run in runs.items()}
        schemas = {name: json.loads(words[words.index("--json-schema") + 1]) for name, words in argv.items()}
        assert schemas == {"lead": tool_schema(width=5), "leaf": tool_schema(leaf=True)}
    assert "--json-schema" not in adapter("claude", structured=False).launch(a_call(tmp_path, runs["lead"])).argv


@pytest.mark.ruling("S6")
def test_codex_gets_the_strict_schema_only_if_its_settings_say_so(tmp_path: Path) -> None:
    assert "--output-schema" not in launched(tmp_path, "codex").argv
    for session in (None, "s-1"):
        call = a_call(tmp_path, leaf_of(a_run("codex")), session)
        launch = adapter("codex", structured=True).launch(call)
        file = Path(launch.argv[launch.argv.index("--output-schema") + 1])
        assert json.loads(file.read_text()) == strict_schema(leaf=True)
        assert file in launch.read
        assert launch.argv.index("--output-schema") < launch.argv.index("resume" if session else "-")
        again = adapter("codex", structured=True).launch(replace(call, runs=True))
        assert again.argv == launch.argv


def leaf_of(run: JobRun) -> JobRun:
    return run.model_copy(update={"leaf": True})


@pytest.mark.ruling("spec:delegation.model", "spec:delegation.effort")
def test_model_and_effort_are_passed_as_they_are_and_again_on_resume(tmp_path: Path) -> None:
    for session in (None, "s-1"):
        words = {}
        for program in ("codex", "claude", "kimi"):
            run = a_run(program, model="some/odd model", effort="bogus")
            words[program] = adapter(program).launch(a_call(tmp_path, run, session)).argv
        assert words["codex"][words["codex"].index("--model") + 1] == "some/odd model"
        assert "model_reasoning_effort=bogus" in words["codex"]
        assert words["claude"][words["claude"].index("--model") + 1] == "some/odd model"
        assert words["kimi"][words["kimi"].index("-m") + 1] == "some/odd model"
        assert not any("bogus" in word for program in ("claude", "kimi") for word in words[program])
        for program in words:
            left = adapter(program).launch(a_call(tmp_path, a_run(program), session)).argv
            assert not any(
                "model" in word or word == "-m" for word in left if word[:1] != "{" and str(tmp_path) not in word
            ), "it is the program's own"
    key = {"KIMI_MODEL_API_KEY": "k", "KIMI_MODEL_NAME": "other"}
    launch = adapter("kimi", key).launch(a_call(tmp_path, a_run("kimi", model="m")))
    assert launch.env["KIMI_MODEL_NAME"] == "m"
    assert "-m" not in launch.argv


@pytest.mark.parametrize("program", ["codex", "claude", "kimi"])
def test_settings_name_the_program_its_arguments_and_what_it_may_see(tmp_path: Path, program: str) -> None:
    environ = {"HOME": "/h", "MY_KEY": "k", "OTHER_SECRET": "s", "HTTPS_PROXY": "p"}
    section = {"command": ["node22", "main.mjs"], "arguments": ["-c", "x=1"], "env": ["MY_KEY"]}
    launch = adapter(program, environ, **section).launch(a_call(tmp_path, a_run(program), "s-1"))
    assert launch.argv[:2] == ("node22", "main.mjs")
    words = " ".join(launch.argv)
    assert "-c x=1 resume s-1 -" in words if program == "codex" else words.endswith("-c x=1")
    assert launch.env["MY_KEY"] == "k"
    assert (launch.env["HOME"], launch.env["HTTPS_PROXY"]) == ("/h", "p")
    assert "OTHER_SECRET" not in launch.env


@pytest.mark.parametrize(
    ("program", "key", "other"),
    [
        ("codex", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
        ("claude", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
        ("kimi", "KIMI_MODEL_API_KEY", "OPENAI_API_KEY"),
    ],
)
def test_each_program_is_given_its_own_key_and_nobody_elses(tmp_path: Path, program: str, key: str, other: str) -> None:
    env = adapter(program, {key: "k", other: "o"}).launch(a_call(tmp_path, a_run(program))).env
    assert env[key] == "k"
    assert other not in env
