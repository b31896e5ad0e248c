"""Attacks of boxed agents on the operator's own sessions, memory, settings and logins, as they were found (ruling N2).

Stand-ins for the three programs attack, in a box and without one, for a service of root and of another account.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.boxes import try_boxes
from activities.runtimes.known_runtimes import PROGRAMS as PROGRAMS_OF_TABLE
from activities.settings.model import WorkerSection
from tests.activities.jobs.programs import PRELUDE
from tests.e2e.program_jobs import KINDS, Job, Place, account_of
from tests.e2e.programs import PROGRAMS, ROOT
from workflows.contract.models import Action, AutonomyPolicy

pytestmark = [pytest.mark.long, pytest.mark.ruling("N2")]

MARK, RENEWS = "what-the-operator-wrote", "renews-the-login"

THEIRS = {
    "codex": {
        ".codex/auth.json": {"tokens": {"access_token": "token", "refresh_token": RENEWS}},
        ".codex/sessions/2026/01/02/rollout-1-theirs.jsonl": MARK,
        ".codex/archived_sessions/rollout-0-theirs.jsonl": MARK,
        ".codex/memories/MEMORY.md": MARK,
        ".codex/history.jsonl": MARK,
        ".codex/config.toml": f'model = "m"\nnotify = ["{MARK}"]\n[mcp_servers.theirs]\ncommand = "{MARK}"\n',
        ".codex/skills/style/SKILL.md": "indent with tabs",
    },
    "claude": {
        ".claude/.credentials.json": {
            "claudeAiOauth": {"accessToken": "token", "refreshToken": RENEWS},
            "mcpOAuth": {"server": {"accessToken": MARK}},
        },
        ".claude/projects/-shop/theirs.jsonl": MARK,
        ".claude/projects/-shop/memory/MEMORY.md": MARK,
        ".claude/todos/theirs.json": MARK,
        ".claude/file-history/theirs/one": MARK,
        ".claude/history.jsonl": MARK,
        ".claude.json": {"projects": {"/shop": {"history": [MARK]}}, "mcpServers": {"theirs": {"command": MARK}}},
        ".claude/settings.json": {"model": "m", "hooks": {"Stop": [MARK]}, "env": {"OTHERS_KEY": MARK}},
        ".claude/skills/style/SKILL.md": "indent with tabs",
    },
    "kimi": {
        ".kimi-code/credentials/kimi.json": {
            "access_token": "token",
            "refresh_token": RENEWS,
            "expires_at": 9_999_999_999,
        },
        ".kimi-code/sessions/wd_shop/session_1/agents/main/wire.jsonl": MARK,
        ".kimi-code/session_index.jsonl": MARK,
        ".kimi-code/mcp.json": {"mcpServers": {"theirs": {"command": MARK}}},
        ".kimi-code/config.toml": f'default_model = "m"\n[[hooks]]\nevent = "Stop"\ncommand = "{MARK}"\n',
        ".kimi-code/skills/style/SKILL.md": "indent with tabs",
    },
}
"""Files of the operator's, by program."""

OTHERS = (
    *(".gitconfig", ".git-credentials", ".netrc", ".npmrc", ".pypirc", ".bash_history", ".python_history", ".ssh/key"),
    *(".config/gh/hosts.yml", ".aws/credentials", ".docker/config.json", ".kube/config", ".cache/tool/file"),
    *(".local/share/tool/file", ".gnupg/key", ".bashrc"),
)
"""Files of the operator's that no program of an agent needs."""

ATTACK = """
def read():
    # Read each of the operator's files, then try to change, replace, link or join it.
    for path in map(pathlib.Path, THEIRS):
        try:
            if KNOWN in path.read_text(): yield str(path)
        except OSError:
            pass
def change():
    for path in map(pathlib.Path, THEIRS):
        for does in (
            lambda: path.open("a").write("forged"), lambda: path.chmod(0o666), lambda: os.utime(path),
            lambda: os.link(path, own / "sessions" / "linked"), lambda: os.replace(path, path.with_suffix(".old")),
            lambda: os.makedirs(path.parent, exist_ok=True),
            *(lambda: (folder / "MEMORY.md").write_text("forged") for folder in path.parents),
        ):
            try:
                does()
            except OSError:
                pass
def files(folder):
    for around, _, names in os.walk(folder):
        for name in names:
            try:
                yield str(pathlib.Path(around, name).relative_to(folder)), pathlib.Path(around, name).read_text()
            except OSError as error:
                yield name, str(error)
def can_change(name):
    try:
        (own / name).open("a").write(" "); return True
    except OSError:
        return False
own = pathlib.Path(os.environ.get(VARIABLE) or pathlib.Path(os.environ["HOME"], FOLDER))
seen = dict(files(own))
result = {"read": list(read()), "own": str(own), "seen": seen, "changed": list(filter(can_change, seen))}
change()
RESULT = json.dumps({"service_result": {"decision": "approved", "summary": json.dumps(result)}})
"""
SAYS = {"codex": "codex(RESULT, 1)", "claude": "claude(RESULT)", "kimi": "kimi(RESULT)"}


def laid_out(user: Path) -> dict[str, str]:
    """Write the operator's files, most of them private, and return their texts by path."""
    texts = dict.fromkeys(OTHERS, MARK)
    for files in THEIRS.values():
        texts |= {name: text if isinstance(text, str) else json.dumps(text) for name, text in files.items()}
    for name, text in texts.items():
        path = user / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644 if "config" in name else 0o600)
    return {str(user / name): text for name, text in texts.items()}


def states(user: Path) -> dict[str, tuple[int, ...]]:
    """Return owner, mode, size and the moment of the last change, of content or owner, of everything below a folder."""
    paths = [user, *(path for path in user.rglob("*") if ".service" not in path.parts)]
    statuses = {str(path): path.lstat() for path in paths}
    return {
        path: (status.st_uid, status.st_gid, status.st_mode, status.st_nlink, status.st_ctime_ns)
        for path, status in statuses.items()
        if path != str(user)
    }


@pytest.fixture(scope="module", params=[*KINDS, ("none", "root")], ids="-".join)
def attacked(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    kind, who = request.param
    uid = account_of(who) if kind != "none" else None
    if kind != "none" and (why := try_boxes.look(WorkerSection().agents_uid).lacks()):
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="folders-"))
    try:
        yield played(folder, kind, uid) | {"kind": kind}
    finally:
        shutil.rmtree(folder)


def played(folder: Path, kind: str, uid: int | None) -> dict[str, Any]:
    user, shop = folder / "user", folder / "shop"
    texts = laid_out(user)
    shop.mkdir()
    commit = "git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m one"
    assert os.system(f"cd {shop} && git init -q -b main && {commit}") == 0
    lines, programs = [], folder / "programs"
    programs.mkdir()
    for name, runtime in PROGRAMS.items():
        script = programs / f"{name}.py"
        theirs = [] if kind == "none" else list(texts)  # without a box nothing keeps it from them
        known = PROGRAMS_OF_TABLE[name]
        constants = f"THEIRS, KNOWN = {theirs!r}, {MARK!r}\n"
        constants += f"VARIABLE, FOLDER = {known.home_variable!r}, {known.home_folder!r}\n"
        script.write_text(PRELUDE.replace('os.environ["HOME"]', "os.getcwd()") + constants + ATTACK + SAYS[name])
        lines += [f"[runtimes.{runtime}]", f'adapter = "{name}"', f'box = "{kind}"', 'network = "none"']
        lines += [f"command = {json.dumps([sys.executable, str(script)])}"]
        lines += [f"read = {json.dumps([sys.prefix, sys.base_prefix, str(programs)])}"]
    if uid is not None:
        for entry in (folder, *folder.rglob("*")):
            os.chown(entry, uid, uid, follow_symlinks=False)
    before = states(user)
    jobs = {name: Job(name, AutonomyPolicy.DANGER_FULL_ACCESS, Action.ASK) for name in PROGRAMS}
    place = Place(folder, "\n".join(lines), {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": str(user)})
    ended = place.play(jobs, uid=uid, shown=[sys.prefix, sys.base_prefix, str(ROOT)])
    after = states(user)
    left = {str(path.relative_to(user)) for path in (user / ".service" / "programs").rglob("*") if path.is_file()}
    return {"ended": ended, "before": before, "after": after, "texts": texts, "user": user, "left": left}


def result_of(attacked: dict[str, Any], program: str) -> dict[str, Any]:
    ended = attacked["ended"][program]
    assert ended["state"] == "succeeded", ended["reason"]
    result: dict[str, Any] = json.loads(ended["summary"])
    return result


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_file_of_the_operator_s_is_read_or_changed_by_an_agent(attacked: dict[str, Any], program: str) -> None:
    result = result_of(attacked, program)
    assert result["read"] == []
    assert MARK not in json.dumps(result["seen"])
    for path, text in attacked["texts"].items():
        assert Path(path).read_text() == text


def test_nothing_of_the_operator_s_home_changes_owner_or_mode_or_is_added(attacked: dict[str, Any]) -> None:
    """The moment of a file's last change of owner or mode tells of changes that were taken back, too."""
    assert attacked["after"] == attacked["before"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_job_has_the_login_without_what_renews_it_and_the_settings_it_may_use(
    attacked: dict[str, Any], program: str
) -> None:
    result = result_of(attacked, program)
    seen, own = result["seen"], Path(result["own"])
    assert own.is_relative_to(attacked["user"] / ".service" / "programs")
    (login,) = (text for name, text in seen.items() if name.endswith(("auth.json", ".credentials.json", "kimi.json")))
    assert "token" in login
    assert RENEWS not in json.dumps(seen)
    (settings,) = (text for name, text in seen.items() if name in ("config.toml", "settings.json"))
    assert '"m"' in settings
    assert seen["skills/style/SKILL.md"] == "indent with tabs"
    if attacked["kind"] == "bwrap":
        assert set(result["changed"]) <= {"session_index.jsonl"}


def test_logins_and_settings_do_not_outlast_the_run(attacked: dict[str, Any]) -> None:
    assert {Path(name).name for name in attacked["left"]} <= {"session_index.jsonl"}
