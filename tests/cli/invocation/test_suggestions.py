"""Mistyped commands, options and names: the right one is suggested, with all that was typed (ruling K6)."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.main import main
from tests import rows
from tests.bridge import seeds

pytestmark = pytest.mark.ruling("K6")

JOB = "job-0123456789ab"
TYPOS = {
    # groups and verbs
    f"merge {JOB}": f"service job merge {JOB}",
    "job ask boss 'how are you'": "service agent ask boss 'how are you'",
    "jbo list --roots": "service job list --roots",
    "agnet lst": "service agent list",
    "attetnion --watch": "service attention --watch",
    "doctr": "service doctor",
    "pipline run nightly": "service pipeline run nightly",
    "pipeline rnu nightly": "service pipeline run nightly",
    "bridge tokn add ci": "service bridge token add ci",
    "bridge token ad ci": "service bridge token add ci",
    "orchestrate panel hi": "service orchestrate review-panel hi",
    "job resume x retry": "service resume x retry",
    f"job cancel {JOB}": f"service job kill {JOB}",
    "agent create x": "service agent add x",
    "repo rm acme/shop": "service repo remove acme/shop",
    "memory remove mem-3": "service memory retire mem-3",
    "statsu": "service status",
    "ps": "service job list",
    "run nightly": "service pipeline run nightly",
    f"reply {JOB}": f"service resume {JOB}",
    "settings": "service config show",
    # what people typed
    "ask boss what does this do": "service agent ask boss 'what does this do'",
    "ask what does this do --wait": "service agent ask 'what does this do' --wait",
    "ask --repo acme/shop boss what is it": "service agent ask boss 'what is it' --repo acme/shop",
    "agent implement boss fix the README --base=main": "service agent implement boss 'fix the README' --base=main",
    "orchestrate verifier raise the limit": "service orchestrate verifier 'raise the limit'",
    f"job revise {JOB} use a set": f"service job revise {JOB} 'use a set'",
    f"memory propose limit it is here --job {JOB}": f"service memory propose limit 'it is here' --job {JOB}",
    "memory recall where is it --agent boss": "service memory recall 'where is it' --agent boss",
    "new": "service agent ask",
    "new 'fix it'": "service agent ask 'fix it'",
    "job new boss hi": "service agent ask boss hi",
    "run 'fix it'": "service agent implement 'fix it'",
    "fix it": "service agent implement it",
    "login": "service runtime check",
    "update": "./dev-cluster/setup",
    "agents": "service agent list",
    "repos": "service repo list",
    "hosts": "service host list",
    "pipelines": "service pipeline list",
    "memories": "service memory list",
    "tasks": "service job list",
    "task list": "service job list",
    "list": "service job list",
    "ui": "service dashboard",
    "setup": "service init",
    "clean": "service gc",
    "check": "service doctor",
    "budget": "service spend",
    "model": "service config show",
    "review 'the last commit'": "service agent review 'the last commit'",
    "job show": "service job list",
    "repo add https://git.invalid/x": "service repo add OWNER/NAME --remote https://git.invalid/x",
    # a job's id behind words that take none
    JOB: f"service job show {JOB}",
    f"job {JOB}": f"service job show {JOB}",
    f"job status {JOB}": f"service job show {JOB}",
    f"status {JOB}": f"service job show {JOB}",
    f"show service/{JOB}-left": f"service job show {JOB}",
    f"logs {JOB}": f"service job log {JOB}",
    f"log {JOB} --raw": f"service job log {JOB} --raw",
    f"cancel {JOB}": f"service job kill {JOB}",
    f"stop {JOB}": f"service job kill {JOB}",
    f"stop {JOB} --now": f"service job kill {JOB} --now",
    f"delete {JOB}": f"service job kill {JOB}",
    f"watch {JOB}": f"service job tree {JOB}",
    f"approve {JOB}": f"service resume {JOB}",
    f"continue {JOB}": f"service resume {JOB}",
    f"merge {JOB} --into-mine": f"service job merge {JOB} --into-mine",
    f"review {JOB}": f"service job review {JOB}",
    f"agent log {JOB}": f"service job log {JOB}",
    # options and their values
    "job list --jsn": "service job list --json",
    "job list --stat=running": "service job list --state=running",
    "ask boss hi --tiemout 1h": "service agent ask boss hi --timeout 1h",
    "job list --state runing": "service job list --state running",
    "job list --jobs --state suceeded": "service job list --jobs --state succeeded",
    "pipeline runs --state blokced": "service pipeline runs --state blocked",
    "agent add x --runtime codx": "service agent add x --runtime codex",
    "agent add x --runtime shell --command cat --session tre": "service agent add x --runtime shell --command cat "
    "--session tree",
    "agent add x --runtime shell --command cat --capabilities reviw": "service agent add x --runtime shell "
    "--command cat --capabilities review",
    "-v": "service --version",
    "job list -n 5": "service job list --limit 5",
    "ask boss -m 'how are you'": "service agent ask boss 'how are you'",
    "ask boss hi --message": "service agent ask boss hi",
    "ask boss hi --budget '$5'": "service agent ask boss hi --budget 5",
    "ask boss hi --budget=5usd": "service agent ask boss hi --budget=5",
    "ask boss hi --pr '#7'": "service agent ask boss hi --pr 7",
    "ask boss hi --pr https://git.invalid/acme/shop/pull/7": "service agent ask boss hi --pr 7",
    "ask boss hi --repo acme/shop --timeout 5": "service agent ask boss hi --repo acme/shop --timeout 5m",
    "agent add x --runtime shell": "service agent add x --runtime shell --command 'python3 agent.py'",
    # what is missing, or too much
    "repo add": "service repo add acme/shop ~/src/shop",
    "backup": "service backup ~/backups/monday",
    "agent add x": "service agent add scout --runtime claude --repo acme/shop",
    "gc now": "service gc",
    "spend yesterday": "service spend",
    "config show worker": "service config show",
    "daemon restart": "service daemon stop",
    "cluster check": "service doctor",
    # names
    "agent ask bos hi --repo acme/shop": "service agent ask boss hi --repo acme/shop",
    "ask boss hi --repo=acme/shopp": "service agent ask boss hi --repo=acme/shop",
    "agent show Boss": "service agent show boss",
    "job list --agent bos": "service job list --agent boss",
    "job list --repo acme/shopp": "service job list --repo acme/shop",
    "runtime check claud": "service runtime check claude",
    "pipeline run nigthly": "service pipeline run nightly",
    "logs wroker": "service daemon logs worker",
    # the manual
    "help piplines": "service help pipelines",
    "help merge": "service help job merge",
    "help agent aks": "service help agent ask",
}
PIPELINE = "name: nightly\nrepo: acme/shop\nstages:\n  - {id: test, kind: shell, command: 'true'}\n"


@pytest.fixture
def full(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Home:
    """Register a repository, an agent and a pipeline, and begin a log."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    (tmp_path / "nightly.yaml").write_text(PIPELINE)
    home.logs.mkdir(exist_ok=True)
    (home.logs / "worker.log").write_text("it works\n")
    assert main(["repo", "add", "acme/shop", str(tmp_path / "shop")]) == 0
    assert main(["agent", "add", "boss", "--runtime", "shell", "--command", "cat", "--repo", "acme/shop"]) == 0
    assert main(["pipeline", "add", str(tmp_path / "nightly.yaml")]) == 0, capsys.readouterr().err
    capsys.readouterr()
    return home


def test_the_right_one_is_suggested(full: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for typed, meant in TYPOS.items():
        assert main(shlex.split(typed)) in {2, 4}, typed
        lines = capsys.readouterr().err.splitlines()
        tries = [line.removeprefix("try:").strip() for line in lines if line.startswith(("try: ", "     "))]
        assert meant in tries, typed


PASTED = (
    "service/{job}",
    "service/{job}-left",
    "task-{short}",
    "service/task-{short}",
    "'{job}'",
    "`{job}`",
    '"{job}"',
    "{job}.",
    "{job},",
    " {job} ",
    "({job})",
    "JOB-0123456789AB",
    "<{job}>",
    "http://127.0.0.1:8500/ui/trees/{job}",
    "refs/heads/service/{job}",
)


def test_a_job_id_is_read_out_of_what_surrounds_it(full: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for form in PASTED:
        assert main(["job", "show", form.format(job=JOB, short=JOB.removeprefix("job-"))]) == 4, form
        assert f"no job {JOB}\n" in capsys.readouterr().err, form
    assert main(["job", "merge", f"service/{JOB}.2-left", f"`{JOB}.3`"]) == 4
    assert f"no job {JOB}.2\n" in capsys.readouterr().err
    assert main(["job", "show", f"{JOB} or job-0123456789ac"]) == 2, "one of two is nobody's choice"
    assert "is not a job id" in capsys.readouterr().err


def test_a_placeholder_is_answered_with_the_newest_tree(full: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "drop", "JOB"]) == 2
    assert capsys.readouterr().err == "error: JOB stands for the id of a job\ntry: service job list\n"
    seeds.write(Service.locate(), rows.job(JOB))
    assert main(["job", "drop", "JOB", "--force"]) == 2
    assert f'did you mean "{JOB}"?\ntry: service job drop {JOB} --force\n' in capsys.readouterr().err


ADDRESSES = (
    "https://github.com/acme/shop",
    "https://github.com/acme/shop.git",
    "https://someone:secret@github.com/Acme/Shop/",
    "git@github.com:acme/shop.git",
    "ssh://git@github.com/acme/shop",
)


def test_a_repository_is_found_by_its_address_or_path(
    full: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = tmp_path / "shop"
    monkeypatch.chdir(shop)
    subprocess.run(["git", "remote", "add", "origin", "https://github.com/acme/shop.git"], check=True)
    assert main(["repo", "add", "acme/shop", "."]) == 0
    assert main(["agent", "add", "boss2", "--runtime", "shell", "--command", "cat"]) == 0
    for address in (*ADDRESSES, ".", str(shop), "../shop"):
        capsys.readouterr()
        assert main(["agent", "allow", "boss2", address]) == 0, address
        assert capsys.readouterr().out == "boss2 may work on acme/shop\n", address
        assert main(["job", "list", "--repo", address]) == 0, address


UNREGISTERED = {
    "https://github.com/acme/web": "service repo add acme/web --remote https://github.com/acme/web",
    "https://someone:secret@git.invalid/web": "service repo add OWNER/NAME --remote https://git.invalid/web",
    "git@git.invalid:web": "service repo add OWNER/NAME --remote git@git.invalid:web",
}


def test_an_unknown_address_is_answered_with_the_command_that_registers_it(
    full: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    for address, command in UNREGISTERED.items():
        assert main(["ask", "boss", "hi", "--repo", address]) == 4, address
        printed = capsys.readouterr().err
        assert f"try: {command}\n" in printed, address
        assert "secret" not in printed
    assert main(["ask", "boss", "hi", "--repo", "shop"]) == 4
    assert "try: service agent ask boss hi --repo acme/shop\n" in capsys.readouterr().err


SENTENCES = {
    "login": "the service has no login",
    "logout": "the service has no login",
    "update": "no command updates the service",
    "upgrade": "no command updates the service",
    f"pause {JOB}": "a task can't be paused by hand",
    "undo": "there is no undo",
    "config set a b": "settings are kept in a file",
    "token": "each agent's program keeps its own key",
    f"stop {JOB}": "`service daemon stop` takes no job",
    f"logs {JOB}": "these are the logs of the service's own processes",
    "ask boss what is it": "put the message in quotes",
    "orchestrate verifier do it": "put the goal in quotes",
    "daemon restart": "no command restarts the daemon",
    "restart": "no command restarts the daemon",
    "doctor --fix": "`service doctor` changes nothing",
    "pipeline add .": "{folder} is a folder",
    "agent list x": "unexpected extra argument: x",
    "agent list x y": "unexpected extra arguments: x y",
}


def test_what_no_command_stands_for_is_answered_by_a_sentence(full: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for typed, sentence in SENTENCES.items():
        assert main(shlex.split(typed)) == 2, typed
        output = capsys.readouterr().err
        assert output.startswith(f"error: {sentence.format(folder=Path.cwd())}"), typed
        assert "\ntry: " in output, typed


def test_a_job_that_a_task_does_not_have_is_answered_with_the_tasks_jobs(
    full: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds.write(Service.locate(), rows.job(JOB))
    assert main(["job", "show", f"{JOB}.9"]) == 4
    assert capsys.readouterr().err == f"error: no job {JOB}.9\ntry: service job tree {JOB}\n"


def test_in_a_folder_that_is_gone_the_sentence_says_so(full: Home, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && {sys.executable} -P -m cli.main ask boss hi"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        "error: the folder that you are in no longer exists\ntry: cd\n",
    )


def test_output_to_a_full_disk_is_answered_with_what_shows_the_room(full: Home) -> None:
    command = f"{sys.executable} -P -m cli.main repo list > /dev/full"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, "try: df -h .")


def test_a_setting_that_is_unknown_is_answered_with_the_nearest_key(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.config.write_text("[orchestrate]\nmax_delegation_depht = 3\n")
    assert main(["config", "check"]) == 2
    assert 'is not a setting; did you mean "max_delegation_depth"?' in capsys.readouterr().err


@pytest.mark.parametrize("typed", ["xyzzy", "job xyzzy", "agent show xyzzy", "job list --xyzzy"])
def test_where_nothing_is_near_nothing_is_made_up(full: Home, capsys: pytest.CaptureFixture[str], typed: str) -> None:
    assert main(typed.split()) in {2, 4}
    assert "id you mean" not in capsys.readouterr().err


def test_a_long_command_is_not_repeated(full: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "ask", "boss", "a" * 300]) == 2
    assert capsys.readouterr().err.endswith("try: service agent ask --help\n")


def test_jobs_of_an_unknown_repository_are_an_error_that_names_the_known_ones(
    full: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", "list", "--repo", "nope"]) == 4
    assert "no repository nope; known: acme/shop" in capsys.readouterr().err
    assert main(["job", "list", "--repo", "acme/shop"]) == 0
