"""`service init` as a new user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from activities.boxes import probes
from activities.boxes import try_boxes as boxes
from activities.boxes.probes import Proof
from activities.cluster import Made
from activities.settings.home import Home
from bridge.operations.home import cluster as own_cluster
from bridge.operations.orders import new_jobs
from bridge.operations.registry import agents, init, repos
from bridge.operations.service import Service
from cli.asking import follow_tree
from cli.asking import init as init_questions
from cli.main import main
from tests.cli.terminal import Printed, typed
from tests.evil import forged, raw
from tests.installed import Machine

pytestmark = pytest.mark.ruling("engine:init")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def shop(tmp_path: Path, home: Home, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a repository with a commit, with `codex` installed and logged in."""
    path = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", "-C", str(path), *identity, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    monkeypatch.chdir(path)
    machine.install("codex")
    return path


def nothing_is_registered() -> bool:
    service = Service.locate()
    return not repos.every(service) and not agents.every(service)


def walked(*keys: str, options: str = "") -> Printed:
    printed = typed(["init", *options.split()], "".join(f"{key}\n" for key in keys))
    assert "Traceback" not in printed.text
    return printed


def test_one_question_after_the_other(shop: Path, machine: Machine) -> None:
    machine.install("claude")
    printed = walked("shop", "acme/shop", "emacs", "claude", "", "n")
    asked = [line for line in printed.said.splitlines() if ": " in line]
    assert "its name here, OWNER/NAME [local/shop]" in printed.text
    assert "error: 'shop' is not a repository name" in "\n".join(asked)
    assert printed.text.count("which program plans and builds (codex, claude) [codex]") == 2
    assert "register it? [Y/n]" in printed.text
    assert "the daemon does not run; start it? [Y/n]" in printed.text
    assert printed.code == 0
    lines = printed.out.decode().splitlines()
    assert lines[:4] == [
        f"acme/shop: registered ({shop})",
        "lead: registered (claude: ask,review; read-only)",
        "builder: registered (claude: implement; danger-full-access)",
        "checker: registered (codex: review; workspace-write)",
    ]
    assert lines[4] == "next:"
    assert [each.split(' "')[0].strip() for each in lines[-3:]] == [
        "service daemon start",
        "service agent ask lead",
        "service agent implement builder",
    ]


def test_the_next_commands_work_in_the_shell_they_are_typed_in(shop: Path) -> None:
    """If the shell finds no `service`, or another one, its folder is put on PATH first."""
    printed = walked(options="--yes --no-start")
    line = next(each.strip() for each in printed.out.decode().splitlines() if "export" in each)
    command = f"{line}; command -v service"
    program = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.strip()
    assert program == str(Path(sys.prefix) / "bin" / "service")


@pytest.mark.parametrize("keys", [("", "n"), ("acme/shop", "what", "no")])
def test_who_says_no_has_changed_nothing(shop: Path, keys: tuple[str, ...]) -> None:
    printed = walked(*keys)
    assert (printed.code, "nothing was changed" in printed.text) == (1, True)
    assert nothing_is_registered()


@pytest.fixture
def leaky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake a machine on whose box a program got out."""
    there = boxes.Machine(bwrap="", own_network=True)
    monkeypatch.setattr(boxes, "look", lambda _: there)
    monkeypatch.setattr(boxes, "allowing", lambda: "sudo allow it")
    monkeypatch.setattr(probes, "proof_of", lambda *_: Proof(escaped=("reach a host socket",)))


@pytest.mark.usefixtures("leaky")
@pytest.mark.parametrize(("answer", "box"), [(True, "none"), (False, "auto")])
def test_without_a_box_that_holds_it_asks_once_and_says_the_command(
    shop: Path,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: bool,
    box: str,
) -> None:
    asked: list[str] = []
    home.config.write_text('[runtimes.runtime_a]\nenv = ["A"]\n')

    def answered(question: str, *, default: bool) -> bool:
        asked.append(question)
        return answer if "without a box" in question else default

    monkeypatch.setattr(init_questions, "_require_terminal", lambda: None)
    monkeypatch.setattr(init_questions, "ask_yes_or_no", answered)
    assert main(["init", "--name", "acme/shop", "--no-start"]) == 0
    assert [each for each in asked if "box" in each] == ["run them all the same, without a box?"]
    errors = capsys.readouterr().err
    assert "in it a program can reach a host socket" in errors
    assert "try: sudo allow it, or set [runtimes.runtime_a].box" in errors
    assert ("agents run with box none" in errors) is answer
    section = Service.locate().settings.runtime("runtime_a")
    assert (section.box, section.env) == (box, ["A"])


@pytest.mark.usefixtures("leaky")
@pytest.mark.parametrize(("option", "box"), [([], "auto"), (["--with-box"], "auto"), (["--without-box"], "none")])
def test_to_have_no_box_takes_a_person_who_names_it(shop: Path, option: list[str], box: str) -> None:
    assert main(["init", "--yes", "--no-start", *option]) == 0
    assert Service.locate().settings.runtime("runtime_a").box == box


def test_the_option_of_a_weaker_box_names_what_replaced_it(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--yes", "--no-start", "--weak-box"]) == 2
    assert "there is no weaker box any more; use --without-box or --with-box" in capsys.readouterr().err


@pytest.mark.parametrize("at", [0, 1])
def test_ctrl_c_at_any_question_leaves_nothing(shop: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    asked: list[str] = []

    def interrupted(question: str, *, default: bool) -> bool:
        asked.append(question)
        if len(asked) > at:
            raise typer.Abort
        return default

    monkeypatch.setattr(init_questions, "_require_terminal", lambda: None)
    monkeypatch.setattr(init_questions, "ask_yes_or_no", interrupted)
    assert main(["init", "--name", "acme/shop"]) == 1
    assert len(asked) == at + 1
    assert nothing_is_registered()


def test_twice_changes_nothing_and_asks_for_nothing_again(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--yes", "--no-start", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["init", "--no-start", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert first["repository"] == second["repository"] | {"new": True}
    assert {each["standing"] for each in first["agents"]} == {"registered"}
    assert {each["standing"] for each in second["agents"]} == {"already there"}
    assert (second["daemon"], second["check"], len(second["next"])) == ("not running", None, 3)


def test_without_a_terminal_it_says_what_to_type(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 2
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "error: this asks questions, and there is no terminal to answer them on; nothing was changed",
        "try: service init --yes",
        "     service init --yes --no-check",
    ]
    assert nothing_is_registered()


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ("--name shop", 2, "'shop' is not a repository name"),
        ("--name acme/taken", 3, "acme/taken is registered already, for "),
        ("--builder kimi", 2, "'kimi' cannot be used here; there is codex"),
        ("--checker shell", 2, "'shell' cannot be used here; there is codex"),
    ],
)
def test_wrong_input_is_a_sentence_and_leaves_nothing(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, code: int, says: str
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "taken")], check=True)
    repos.add(Service.locate(), "acme/taken", tmp_path / "taken")
    assert main(["init", "--yes", *options.split()]) == code
    printed = capsys.readouterr()
    assert says in printed.err
    assert "try: service " in printed.err
    assert printed.out == ""
    assert [each.name for each in repos.every(Service.locate())] == ["acme/taken"]
    assert agents.every(Service.locate()) == []


def test_no_repository_no_commit_no_program(
    home: Home, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    monkeypatch.chdir(folder)
    machine.install("codex")
    assert main(["init", "--yes"]) == 2
    assert f"error: {folder} is not a git repository\ntry: git -C {folder} init\n" in capsys.readouterr().err
    subprocess.run(["git", "init", "-q"], check=True)
    assert main(["init", "--yes"]) == 3
    assert "has no commit yet\ntry: git -C " in capsys.readouterr().err
    (tmp_path / "bin" / "codex").unlink()
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    assert main(["init", "--yes"]) == 3
    assert "try: npm install -g @openai/codex\n     npm install -g @anthropic-ai" in capsys.readouterr().err
    assert nothing_is_registered()


def test_a_program_without_a_login_is_registered_and_not_tried(
    shop: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.install("codex", logged_in=False)
    monkeypatch.setattr(init, "runs", lambda _: True)
    assert main(["init", "--yes", "--check"]) == 0
    printed = capsys.readouterr()
    assert "no job is tried" in printed.err
    assert "codex: not logged in; codex login" in printed.out
    assert "next:\n" in printed.out
    assert "  service runtime check codex\n" in printed.out


@pytest.mark.parametrize(("ended", "tells"), [(0, False), (1, True)])
def test_a_try_that_fails_says_how_to_go_on_and_is_told_by_the_exit_code(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ended: int, tells: bool
) -> None:
    asked: list[new_jobs.NewJob] = []

    async def start(_: Service, new: new_jobs.NewJob) -> str:
        asked.append(new)
        return "job-1"

    monkeypatch.setattr(new_jobs, "start", start)
    monkeypatch.setattr(follow_tree, "follow", lambda *_, **__: ended)
    monkeypatch.setattr(init, "runs", lambda _: True)
    assert main(["init", "--yes"]) == ended
    printed = capsys.readouterr()
    assert ("service job retry job-1\n" in printed.err) is tells
    assert "next:\n" in printed.out
    assert [(each.agent, each.action, each.repo) for each in asked] == [("lead", "ask", "local/shop")]
    assert main(["init", "--yes"]) == 0
    assert main(["init", "--yes", "--no-check"]) == 0
    assert len(asked) == 1
    assert main(["init", "--check"]) == ended
    assert len(asked) == 2


LACKS = "the namespace team does not exist at 10.0.0.5:7233"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the Temporal server lack its namespace; return what is asked of it."""
    asked: list[str] = []

    def made(_: Service, retention: str | None, _step: object) -> Made:
        asked.append(f"init {retention}")
        return Made(("created the namespace team",))

    monkeypatch.setattr(own_cluster, "lacking", lambda _: (LACKS,))
    monkeypatch.setattr(own_cluster, "init", made)
    return asked


@pytest.mark.ruling("Q1.init")
def test_a_server_of_ones_own_is_made_ready_once_that_is_agreed(
    shop: Path, cluster: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(init_questions, "_require_terminal", lambda: None)
    monkeypatch.setattr(init_questions, "ask_yes_or_no", lambda *_, **__: False)
    assert main(["init", "--name", "local/shop"]) == 1
    errors = capsys.readouterr().err
    assert f"the Temporal server would be made ready, as by service cluster init:\n  {LACKS}\n" in errors
    assert cluster == []
    assert nothing_is_registered()
    assert main(["init", "--yes", "--no-start"]) == 0
    assert cluster == ["init None"]
    assert capsys.readouterr().out.splitlines()[:2] == [
        "created the namespace team",
        f"local/shop: registered ({shop})",
    ]


@pytest.mark.ruling("Q1.init")
@pytest.mark.parametrize("json_", [True, False])
def test_where_the_server_may_not_be_made_ready_the_commands_are_printed_and_nothing_is_registered(
    shop: Path,
    cluster: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    json_: bool,
) -> None:
    by_hand = Made(("this account may create nothing more",), ("temporal operator namespace create team",))
    monkeypatch.setattr(own_cluster, "init", lambda *_: by_hand)
    assert main(["init", "--yes", *(["--json"] if json_ else [])]) == 3
    out = capsys.readouterr().out
    if json_:
        assert json.loads(out) == {"said": [*by_hand.said], "by_hand": [*by_hand.by_hand]}
    else:
        assert out.splitlines() == [*by_hand.said, "by hand:", f"  {by_hand.by_hand[0]}"]
    assert nothing_is_registered()


@pytest.mark.ruling("N6")
def test_a_folder_s_name_is_shown_as_one_line_of_what_can_be_seen(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = tmp_path / "x\nerror: FORGED \x1b[2J\u202e"
    shop.rename(evil)
    monkeypatch.chdir(evil)
    for printed in (walked(options="--yes --no-start"), walked("", "", "n"), walked("", options="--name x")):
        assert "FORGED" in printed.text
        assert not raw(printed.said)
        assert not forged(printed.text)


@pytest.mark.ruling("K3")
@pytest.mark.parametrize(("installed", "lines"), [(True, 0), (False, 1)])
def test_an_agent_whose_program_is_not_there_is_added_with_a_warning(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], installed: bool, lines: int
) -> None:
    if not installed:
        (tmp_path / "bin" / "codex").unlink()
    assert main(["agent", "add", "scout", "--runtime", "runtime_a", "--json"]) == 0
    printed = capsys.readouterr()
    assert len(printed.err.splitlines()) == lines
    assert installed or printed.err.startswith("warning: codex is not installed: npm install -g @openai/codex")
    assert json.loads(printed.out)["name"] == "scout"
