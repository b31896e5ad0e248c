"""Policies, tested by the real programs in their boxes, for a service of root and of another account.

The scripted model makes each program write to its work folder and beside it, run commands, and connect to a port.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from activities.boxes import try_boxes
from activities.host.build_trial import build_trial
from activities.runtimes.known_runtimes import PROGRAMS as PROGRAMS_OF_TABLE
from activities.settings.model import Settings, WorkerSection
from tests.e2e.program_jobs import KINDS, Job, Place, account_of
from tests.e2e.programs import PROGRAMS, ROOT, available, need, sections, variables
from tests.scripted_model import ScriptedModel
from workflows.contract.models import WRITE_POLICIES, Action, AutonomyPolicy

pytestmark = [pytest.mark.long, pytest.mark.ruling("P5", "N2")]

AUTO, READ, WRITE, FULL = AutonomyPolicy


@dataclass(frozen=True)
class Promise:
    """A program's permissions under a policy."""

    edits: bool = False
    """True if it writes files of its work folder with its own tools."""
    runs: bool = False
    """True if it runs commands."""
    builds: bool = False
    """True if its commands write to its work folder."""


NOTHING, EDITS, READS, ALL = Promise(), Promise(edits=True), Promise(runs=True), Promise(True, True, True)
PROMISES = {
    "codex": {AUTO: READS, READ: READS, WRITE: ALL, FULL: ALL},
    "claude": {AUTO: NOTHING, READ: NOTHING, WRITE: EDITS, FULL: ALL},
    "kimi": {AUTO: NOTHING, READ: NOTHING, WRITE: EDITS, FULL: ALL},
}
"""As in `service help runtimes`. Below full access, codex confines its commands by a sandbox, or by the box."""


@dataclass
class Tried:
    """The outcomes of all programs' jobs under all policies."""

    folder: Path
    ended: dict[str, dict[str, Any]]
    requests: list[dict[str, Any]]
    reached: list[str]

    def sent(self, name: str) -> str:
        """Return everything that a job's program sent to the model."""
        return " ".join(str(one["body"]) for one in self.requests if one["scenario"] == name)


def steps(name: str, folder: Path, port: int) -> list[dict[str, Any]]:
    """Return the model's steps for a program. The texts that prove an execution are not in the commands themselves."""
    reach = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo {name} >&3"
    command = f"echo ran-$((40+2)); echo x > command.txt && echo wrote-$((40+2)); echo x > {folder}/{name}-command.txt"
    result = {"decision": "approved", "summary": "tried it"}
    return [
        {"write_file": {"path": "made.txt", "content": "made\n"}},
        {"write_file": {"path": f"../{name}-beside.txt", "content": "x"}},
        {"run": command},
        {"run": f"bash -c '{reach}'"},
        {"result": result},
    ]


CHECK: list[dict[str, Any]] = [
    {"run": "python -m pytest -q"},
    {"run": "npm test"},
    {"run": "git diff base...HEAD"},
    {"run": "git log --format=%s line"},
    {"run": "git show leg/code:limit.py"},
    {"result": {"decision": "approved", "summary": "ran build and tests"}},
]
"""Steps of a verify leg."""

REFUSED: list[dict[str, Any]] = [
    {"write_file": {"path": "../beside.txt", "content": "x"}},
    {"run": "python3 -c \"open('../beside.txt', 'w')\""},
    {"result": {"decision": "implemented", "summary": "made it", "changes_made": ["beside.txt: created"]}},
]
"""Steps of an implement job that may write to its work folder, and tries to write beside it."""

SHOP = {
    "test_shop.py": "def test_shop():\n    assert 1 + 1 == 2\n",
    "package.json": '{"name": "shop", "scripts": {"test": "node -e \'console.log(`checked-${40 + 2}`)\'"}}',
}


def prepared(folder: Path) -> None:
    """Create a repository with tests, and a user with private settings of the programs."""
    (folder / "shop").mkdir()
    for name, text in SHOP.items():
        (folder / "shop" / name).write_text(text)
    commit = "git add . && git -c user.name=t -c user.email=t@example.invalid commit -q -m"
    leg = f"git checkout -q -b code && echo 'limit = 7' > limit.py && {commit} 'make the limit' && git checkout -q main"
    subprocess.run(["sh", "-ec", f"git init -q -b main && {commit} one && {leg}"], cwd=folder / "shop", check=True)
    settings = {"codex/config.toml": "", "kimi/config.toml": "telemetry = false\n", "claude/settings.json": "{}"}
    for name, text in settings.items():
        file = folder / "user" / "programs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600)


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def tried(request: pytest.FixtureRequest) -> Iterator[Tried]:
    kind, who = request.param
    if not available():
        need(*PROGRAMS)
    uid = account_of(who)
    if why := try_boxes.look(WorkerSection().agents_uid).lacks():
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="programs-", dir="/var/tmp"))  # in the sandbox of Codex, /dev/shm is another
    jobs = {
        f"{program}-{policy}": Job(program, policy, Action.IMPLEMENT if policy in WRITE_POLICIES else Action.REVIEW)
        for program in available()
        for policy in AutonomyPolicy
    }
    checks = {
        f"{program}-verify": Job(program, PROGRAMS_OF_TABLE[program].builds_with, Action.REVIEW, after="code")
        for program in available()
    }
    refused = {f"{program}-refused": Job(program, WRITE, Action.IMPLEMENT) for program in available()}
    reached: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_listen, args=(server, reached), daemon=True).start()
        scenarios = {name: steps(name, folder, server.getsockname()[1]) for name in jobs}
        scenarios |= dict.fromkeys(checks, CHECK) | dict.fromkeys(refused, REFUSED)
        with ScriptedModel(scenarios) as model:
            ended = _played(folder, kind, uid, jobs | checks | refused, model)
            yield Tried(folder, ended, model.requests(), reached)
    shutil.rmtree(folder)


def _listen(server: socket.socket, reached: list[str]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # the test is over
            return
        with connection:
            reached.append(connection.recv(100).decode())


def _played(
    folder: Path, kind: str, uid: int | None, jobs: dict[str, Job], model: ScriptedModel
) -> dict[str, dict[str, Any]]:
    users = folder / "user"
    users.mkdir()
    path = f"{sys.prefix}/bin:/usr/bin:/bin"
    environ = {"PATH": path, "HOME": str(users), **variables(users / "programs", model)}
    prepared(folder)
    if uid is not None:
        for entry in (folder, *folder.rglob("*")):
            os.chown(entry, uid, uid, follow_symlinks=False)
    programs = Path(next(iter(available().values()))).parents[1]
    place = Place(folder, sections(model, f'box = "{kind}"', read=[sys.prefix, sys.base_prefix]), environ)
    return place.play(jobs, uid=uid, shown=[sys.prefix, sys.base_prefix, str(ROOT), str(programs)])


@pytest.mark.parametrize("policy", AutonomyPolicy)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_does_what_its_policy_promises_and_no_more(
    tried: Tried, program: str, policy: AutonomyPolicy
) -> None:
    need(program)
    name, promise = f"{program}-{policy}", PROMISES[program][policy]
    ended, output = tried.ended[name], tried.sent(name)
    assert ended["state"] == "succeeded", ended["reason"]
    left = {"made.txt": promise.edits, "command.txt": promise.builds}
    assert set(ended["touched_files"]) == {file for file, there in left.items() if there}
    assert (("ran-42" in output), ("wrote-42" in output)) == (promise.runs, promise.builds), output[-3000:]
    beside = [str(path) for path in tried.folder.rglob(f"{name}-*.txt")]
    assert beside == []
    assert not [text for text in tried.reached if name in text]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_verify_leg_runs_build_and_tests_under_the_policy_that_prompts_name(tried: Tried, program: str) -> None:
    need(program)
    ended, output = tried.ended[f"{program}-verify"], tried.sent(f"{program}-verify")
    assert (ended["state"], ended["decision"]) == ("succeeded", "approved"), ended["reason"]
    assert "1 passed" in output, output[-3000:]
    assert "checked-42" in output, output[-3000:]


@pytest.mark.parametrize("kind", ["bwrap", "none"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_runtime_check_builds_with_the_program_itself_where_no_model_is_needed(program: str, kind: str) -> None:
    need(program)
    if kind != "none" and (why := try_boxes.look(WorkerSection().agents_uid).lacks()):
        pytest.skip(why)
    command = available()[program]
    section = {"command": [command], "read": [str(Path(command).parent)], "box": kind}
    settings = Settings.model_validate({"runtimes": {PROGRAMS[program]: section}})
    trial = build_trial(settings, os.environ, PROGRAMS[program])
    assert trial
    assert (trial.policy, trial.problem) == (PROGRAMS_OF_TABLE[program].builds_with, "")
    assert trial.box.startswith(kind)


@pytest.mark.ruling("O4")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_tool_calls_of_a_verify_leg_read_base_line_and_the_legs(tried: Tried, program: str) -> None:
    need(program)
    output = tried.sent(f"{program}-verify")
    assert "+limit = 7" in output, "git diff base...HEAD"
    assert "make the limit" in output, "git log line"
    assert output.count("limit = 7") > output.count("+limit = 7"), "git show leg/code:limit.py"


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_was_refused_every_write_has_not_implemented_anything(tried: Tried, program: str) -> None:
    need(program)
    ended = tried.ended[f"{program}-refused"]
    assert (ended["state"], ended["decision"]) == ("failed", None), ended
    assert 'by the policy "workspace-write" and wrote nothing' in ended["reason"]
    assert f"--runtime {PROGRAMS[program]} --capabilities implement --autonomy danger" in ended["reason"]
    assert not list(tried.folder.rglob("beside.txt"))
