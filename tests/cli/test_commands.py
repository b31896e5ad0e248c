"""Bad input to every command: a sentence, the next thing to type, the exit code of K6; never a traceback."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from activities.runtimes import programs
from activities.settings.home import Home
from bridge.operations.orders import new_jobs
from bridge.operations.service import Service
from cli.main import NOUNS, main
from tests.activities.git.conftest import make_repository
from tests.bridge import seeds
from workflows.model.states import JobState, WaitsFor

pytestmark = pytest.mark.ruling("K6")


@pytest.fixture
def repo(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = make_repository(tmp_path / "shop")
    assert main(["repo", "add", "acme/shop", str(path)]) == 0
    capsys.readouterr()
    return path


SHELL = ("--runtime", "shell", "--command", "cat")


MISTAKES = (
    ("repo add shop .", 2, "'shop' is not a repository name"),
    ("repo add acme/x /no/such", 4, "/no/such is not a folder"),
    ("repo remove acme/x", 4, "no repository acme/x; known: acme/shop"),
    ("agent add runtime_a --runtime shell --command cat", 2, "runtime_a is the name of a runtime"),
    ("agent add -x --runtime shell", 2, "No such option"),
    ("agent add a/b --runtime shell --command cat", 2, "'a/b' is not an agent name"),
    ("agent add a --runtime gemini", 2, "'gemini' is not a runtime; the runtimes are codex"),
    ("runtime check gemini", 4, "no runtime gemini; the runtimes are codex"),
    ("agent add a --runtime runtime_a --session forever", 2, "'forever' is not a session scope"),
    ("agent add a --runtime shell --command cat --session tree", 2, "the shell runtime has no sessions"),
    ("agent add a --runtime shell", 2, "the shell runtime needs a command"),
    ("agent add a --runtime shell --command 'cat", 2, "--command cannot be read: No closing quotation"),
    ("agent add a --runtime runtime_a --command cat", 2, "--command is for the shell runtime"),
    ("agent add a --runtime runtime_a --capabilities fly", 2, "'fly' is not a capability"),
    ("agent add a --runtime runtime_a --capabilities ,", 2, "agent a needs at least one capability"),
    ("agent add a --runtime runtime_a --autonomy yes", 2, "'yes' is not an autonomy policy"),
    ("agent add a --runtime runtime_a --capabilities implement", 2, "needs a write policy, not auto"),
    ("agent add a --runtime runtime_a --repo acme/x", 4, "no repository acme/x"),
    ("agent show a", 4, "no agent a; known: scout"),
    ("agent remove a", 4, "no agent a"),
    ("agent allow scout acme/x", 4, "no repository acme/x"),
    ("agent deny scout acme/x", 3, "scout was not allowed on acme/x"),
    ("agent add scout --runtime runtime_a", 3, "there is an agent scout already"),
    ("agent ask nobody hi --repo acme/shop", 4, "no agent nobody; known: scout"),
    ("agent ask shell hi --repo acme/shop", 4, "shell is the name of a runtime, not of an agent; known: scout"),
    ("agent ask runtime_b hi --repo acme/shop", 4, "try: service agent add NAME --runtime runtime_b"),
    ("agent ask scout hi --repo acme/shop --model ''", 2, "--model is empty: name one, or leave --model out"),
    ("agent review scout hi --repo acme/shop --effort ' '", 2, "--effort is empty"),
    ("agent ask scout hi --repo acme/x", 4, "no repository acme/x"),
    ("agent implement scout hi --repo acme/shop", 3, "scout only plans and reviews: choose ask or review"),
    ("agent ask scout '' --repo acme/shop", 2, "the message is empty"),
    ("agent ask scout hi --repo acme/shop --runtime gemini", 2, "'gemini' is not a runtime for scout"),
    ("agent review scout hi --repo acme/shop --runtime runtime_c", 3, "runtime_c is not configured"),
    ("agent review scout hi --repo acme/shop --runtime kimi", 3, "runtime_c is not configured"),
    ("orchestrate verifier hi --repo acme/shop --runtimes codex,gemini", 3, "a recipe needs a configured runtime"),
    ("agent ask codex hi --repo acme/shop", 4, "try: service agent add NAME --runtime codex"),
    ("agent ask --repo acme/shop", 2, "the message is missing\ntry: service agent ask"),
    ("agent ask scout hi", 2, "is not registered; registered: acme/shop\ntry: service init"),
    ("agent ask scout --repo acme/shop", 2, "the message is missing\ntry: service agent ask scout"),
    ("agent ask scuot --repo acme/shop", 2, "the message is missing, and there is no agent scuot"),
    ("agent ask shell --repo acme/shop", 2, "the message is missing"),
    ("agent implement 'do it' --repo acme/shop", 3, "no agent can implement on acme/shop"),
    ("agent ask 'what is it' --repo acme/x", 3, "no agent can ask on acme/x"),
    ("agent ask scout hi --repo acme/shop", 5, "Temporal cannot be reached at 127.0.0.1:1"),
    ("job show x", 2, "'x' is not a job id"),
    ("job show job-0123456789ab", 4, "no job job-0123456789ab"),
    ("job events job-0123456789ab.3", 4, "no job job-0123456789ab.3"),
    ("job tree x", 2, "'x' is not a job id"),
    ("job tree job-0123456789ab", 4, "no job job-0123456789ab"),
    ("job events job-0123456789ab --follow", 4, "no job job-0123456789ab"),
    ("job branches x", 2, "'x' is not a job id"),
    ("job branches job-0123456789ab", 4, "no job job-0123456789ab"),
    ("job merge", 2, "Missing argument"),
    ("job merge job-0123456789ab.1 x", 4, "no job job-0123456789ab.1"),
    ("job merge left --anyway", 2, "'left' is not a job id"),
    ("job gate", 2, "Missing argument"),
    ("job gate job-0123456789ab", 4, "no job job-0123456789ab"),
    ("job gate job-0123456789ab --pr 0", 2, "Invalid value"),
    ("job merge left", 2, "'left' is not a job id"),
    ("job publish x", 2, "'x' is not a job id"),
    ("job publish job-0123456789ab", 4, "no job job-0123456789ab"),
    ("job drop job-0123456789ab.1 --force", 4, "no job job-0123456789ab.1"),
    ("job diff job-0123456789ab.1 --stat", 4, "no job job-0123456789ab.1"),
    ("job kill job-0123456789ab", 4, "no job job-0123456789ab"),
    ("job retry job-0123456789ab.1 --json", 4, "no job job-0123456789ab.1"),
    ("job list --tree job-0123456789ab", 4, "no job job-0123456789ab"),
    ("job show review-0123456789ab", 4, "no in-session review review-0123456789ab"),
    ("job note review-0123456789ab hi", 4, "no in-session review"),
    ("job close review-0123456789ab", 4, "no in-session review"),
    ("job open --pr 0 --head-sha abcdef1 --workflow w", 2, "Invalid value"),
    ("job open --pr 1 --head-sha xyz --workflow w", 2, "'xyz' is not a commit"),
    ("job open --pr 1 --head-sha abcdef1 --workflow ''", 2, "the workflow label is empty"),
    ("job open --pr 1 --head-sha abcdef1 --workflow w --type merge", 2, "'merge' cannot be opened by hand"),
    ("job open --pr 1 --head-sha abcdef1 --workflow w --repo a/b", 4, "no repository a/b"),
    ("agent ask scout hi --repo acme/shop --pr 0", 2, "Invalid value"),
    ("agent ask scout hi --repo acme/shop --pr 7 --issue 7", 2, "to a pull request or to an issue, not to both"),
    ("agent ask scout hi --repo acme/shop --pr 7", 3, "shop --github OWNER/NAME"),
    ("agent review scout hi --repo acme/shop --issue 7", 3, "the repository acme/shop has no GitHub name"),
    ("agent implement scout hi --repo acme/shop --pr 7", 3, "scout only plans and reviews"),
    ("orchestrate verifier hi --pr x", 2, "Invalid value"),
    ("pipeline run p --pr 0", 2, "Invalid value"),
    ("repo add acme/shop . --github shop", 2, "'shop' is not a repository on GitHub"),
    ("job list --issue 0", 2, "Invalid value"),
    ("orchestrate verifier '' --repo acme/shop", 2, "the message is empty"),
    ("orchestrate verifier hi --repo acme/shop", 3, "a recipe needs a configured runtime"),
    ("orchestrate panel hi", 2, "No such command"),
    ("result check /no/such", 4, "/no/such"),
    ("job list --state succeeded", 2, "service job list --jobs --state succeeded"),
    ("job list --jobs --state done", 2, "'done' is not a job state"),
    ("job list --limit 0", 2, "Invalid value"),
    ("nonsense", 2, "No such command"),
    ("jbo list", 2, "Did you mean 'service job list'?"),
    ("job lst", 2, "Did you mean 'service job list'?"),
    ("restore /no/such", 4, "/no/such is not a backup"),
    ("job nonsense", 2, "No such command"),
)


def test_a_mistake_is_answered_by_a_sentence(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find", lambda *_: None)
    Home.locate().config.write_text("[temporal]\nport = 1\n")
    assert main(["agent", "add", "scout", *SHELL, "--repo", "acme/shop"]) == 0
    capsys.readouterr()
    for words, code, sentence in MISTAKES:
        split = words.split(" ") if words.count("'") == 1 else shlex.split(words)
        assert main(split) == code, words
        printed = capsys.readouterr()
        assert sentence in printed.err, words
        assert "Traceback" not in printed.err
        assert printed.out == "", words


@pytest.mark.ruling("K3")
def test_a_runtime_may_be_named_by_its_program(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for program, runtime in (("codex", "runtime_a"), ("claude", "runtime_b"), ("kimi", "runtime_c")):
        assert main(["agent", "add", f"by-{program}", "--runtime", program, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["runtime"] == runtime
        main(["runtime", "check", program, "--json"])
        assert [each["name"] for each in json.loads(capsys.readouterr().out)["runtimes"]] == [runtime]
    Home.locate().config.write_text('[runtimes.codex]\nadapter = "claude"\n')
    assert main(["agent", "add", "other", "--runtime", "claude", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runtime"] == "runtime_a", "the settings say which runtime it drives"


def test_an_agent_not_allowed_on_the_repository_is_refused_with_the_command_that_allows_it(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["agent", "add", "scout", *SHELL]) == 0
    capsys.readouterr()
    assert main(["agent", "ask", "scout", "hi", "--repo", "acme/shop"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "error: scout is not allowed on acme/shop",
        "try: service agent allow scout acme/shop",
    ]


@pytest.mark.ruling("spec:delegation.model", "spec:delegation.effort")
@pytest.mark.parametrize(
    ("words", "means"),
    [
        (("ask", "scout", "--model", "own", "--effort", "high"), ("own", "high")),
        (("ask", "scout"), ("agents", "medium")),
        (("ask", "plain"), ("usual", "low")),
    ],
)
def test_an_ask_runs_with_its_own_model_the_agents_or_the_runtimes(
    repo: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], means: tuple[str, str]
) -> None:
    from bridge.operations.orders import trees
    from workflows.tree.reducer import root_run
    from workflows.tree.state import TreeInput

    begun: list[TreeInput] = []

    async def start(_service: object, tree: TreeInput, _host: str) -> str:
        begun.append(tree)
        return tree.root_job_id

    monkeypatch.setattr(trees, "start", start)
    Home.locate().config.write_text('[runtimes.shell]\ndefault_model = "usual"\ndefault_effort = "low"\n')
    own = ("--model", "agents", "--effort", "medium")
    assert main(["agent", "add", "scout", *SHELL, *own, "--repo", "acme/shop"]) == 0
    assert main(["agent", "add", "plain", *SHELL, "--repo", "acme/shop"]) == 0
    action, agent, *options = words
    assert main(["agent", action, agent, "hi", "--repo", "acme/shop", *options]) == 0
    run = root_run(begun[0])
    assert (run.assignment.model, run.assignment.effort) == means


class TestWhatIsLeftOut:
    """The repository of the current folder and the only able agent are taken, and named."""

    @pytest.fixture(autouse=True)
    def begun(self, monkeypatch: pytest.MonkeyPatch) -> list[new_jobs.NewJob]:
        begun: list[new_jobs.NewJob] = []

        async def start(_service: object, new: new_jobs.NewJob, token: str | None) -> str:
            begun.append(new)
            return seeds.ROOT

        monkeypatch.setattr(new_jobs, "start", start)
        return begun

    @pytest.mark.parametrize("folder", [".", "src/deep", "../elsewhere"])
    def test_both_are_chosen_and_said(
        self,
        repo: Path,
        begun: list[new_jobs.NewJob],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        folder: str,
    ) -> None:
        (repo / "src/deep").mkdir(parents=True)
        subprocess.run(["git", "-C", str(repo), "worktree", "add", "-q", str(repo.parent / "elsewhere")], check=True)
        main(["repo", "add", "acme/other", str(make_repository(repo.parent / "other"))])
        main(["agent", "add", "scout", *SHELL, "--repo", "acme/shop"])
        main(["agent", "add", "other", *SHELL, "--repo", "acme/other"])
        monkeypatch.chdir(repo / folder)
        capsys.readouterr()
        assert main(["agent", "ask", "What is it?"]) == 0
        assert [(each.agent, each.message, each.repo) for each in begun] == [("scout", "What is it?", "acme/shop")]
        printed = capsys.readouterr()
        assert printed.err == "agent scout, repository acme/shop\n"
        assert printed.out.startswith(f"{seeds.ROOT}\n")
        assert main(["agent", "ask", "What is it?", "--json"]) == 0
        assert capsys.readouterr().err == ""

    def test_two_able_agents_are_listed_and_none_is_asked(
        self, repo: Path, begun: list[new_jobs.NewJob], capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ("one", "two"):
            main(["agent", "add", name, *SHELL, "--repo", "acme/shop"])
        capsys.readouterr()
        assert main(["agent", "review", "Is it good?", "--repo", "acme/shop"]) == 2
        assert capsys.readouterr().err.splitlines() == [
            "error: which agent? one and two can review on acme/shop",
            'try: service agent review one "MESSAGE" --repo acme/shop',
            '     service agent review two "MESSAGE" --repo acme/shop',
        ]
        assert begun == []

    def test_outside_of_repositories_the_only_one_is_meant_and_of_two_none(
        self,
        repo: Path,
        begun: list[new_jobs.NewJob],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        main(["agent", "add", "scout", *SHELL, "--repo", "acme/shop"])
        monkeypatch.chdir(tmp_path)
        assert main(["agent", "ask", "scout", "What is it?"]) == 0
        main(["repo", "add", "acme/other", str(make_repository(tmp_path / "other"))])
        assert main(["agent", "ask", "scout", "What is it?"]) == 2
        assert "which repository? Registered: acme/other, acme/shop" in capsys.readouterr().err
        assert [each.repo for each in begun] == ["acme/shop"]

    def test_a_checkout_under_two_names_is_ambiguous(
        self, repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["repo", "add", "acme/again", str(repo)])
        monkeypatch.chdir(repo)
        assert main(["agent", "ask", "scout", "hi"]) == 2
        assert "try: --repo acme/again\n     --repo acme/shop\n" in capsys.readouterr().err


def test_a_broken_configuration_is_named_by_every_command(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config.write_text("[orchestrate]\nmax_delegation_depht = 1\n")
    for words in (["config", "check"], ["config", "show"], ["repo", "list"], ["job", "list"]):
        assert main(words) == 2
        assert 'did you mean "max_delegation_depth"?' in capsys.readouterr().err


def test_what_is_registered_is_read_back_as_json(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["agent", "add", "scout", *SHELL, "--repo", "acme/shop", "--about", "looks"])
    capsys.readouterr()
    assert main(["agent", "show", "scout", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["command"], shown["repos"], shown["role"]) == (["cat"], ["acme/shop"], "looks")
    main(["repo", "list", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["path"] == str(repo)
    main(["agent", "remove", "scout"])
    main(["repo", "remove", "acme/shop"])
    capsys.readouterr()
    main(["agent", "list", "--json"])
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_explains_itself(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([noun, "--help"]) == 0
    output = capsys.readouterr().out
    assert "Usage: service" in output
    assert main([noun, "-h"]) == 0
    assert capsys.readouterr().out == output
    assert main(["--help"]) == 0
    assert f"{noun} " in capsys.readouterr().out


def test_the_release_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"service \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_the_message_may_come_from_standard_input(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("  \n"))
    main(["agent", "add", "scout", *SHELL, "--repo", "acme/shop"])
    assert main(["agent", "ask", "scout", "-", "--repo", "acme/shop"]) == 2
    assert "the message is empty" in capsys.readouterr().err


@pytest.mark.ruling("G2", "B3")
@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.SUCCEEDED])
def test_a_tree_that_is_being_ended_says_so_and_what_finishes_it(
    home: Home, capsys: pytest.CaptureFixture[str], state: JobState
) -> None:
    what_next = f"what runs finishes first; to stop all of it: service job kill {seeds.ROOT} --now"
    killed = seeds.task(reason="killed by ann", next=what_next, waits_for=WaitsFor.RUNS)
    service = Service(home)
    seeds.write(service, killed, seeds.job(state=JobState.SUCCEEDED), seeds.job(f"{seeds.ROOT}.1", state=state))
    assert main(["job", "tree", seeds.ROOT]) == 0
    tree = capsys.readouterr().out
    assert "  because: killed by ann\n" in tree
    assert f"  next: {what_next}\n" in tree
    assert main(["job", "show", f"{seeds.ROOT}.1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "because killed by ann" in shown
    assert f"next {what_next}" in shown
    seeds.write(service, seeds.task(reason="goes on", next="", revision=2))
    assert main(["job", "tree", seeds.ROOT]) == 0
    assert main(["job", "show", seeds.ROOT]) == 0
    assert "goes on" not in capsys.readouterr().out, "an open task simply goes on"


def test_an_answer_is_carried_as_one_value_and_storable_whatever_the_terminal_lets_through() -> None:
    from cli.asking.questions import TypedAnswer
    from cli.drawing.words import actor

    order = TypedAnswer("answer", "color: r\udced\r\nsize: 4", partial=True).order("job-0123456789ab", 2, "d1")
    assert (order.actor, order.channel, order.job_id) == (actor(), "cli", "job-0123456789ab")
    assert (order.verb, order.text) == ("answer", "color: r\ufffd\nsize: 4")
    assert (order.round, order.digest, order.partial, order.other) == (2, "d1", True, False)


@pytest.mark.ruling("F4")
def test_questions_that_nobody_can_answer_any_more_are_not_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cli.asking import questions

    typed = iter(["1", ""])
    monkeypatch.setattr(questions, "ask_text", lambda *_: next(typed))
    answer = questions.ask(seeds.round_(verbs=("abort", "extend")))
    assert answer == questions.TypedAnswer("abort")
    assert "1) abort" in capsys.readouterr().err


@pytest.mark.ruling("L1")
def test_a_repository_says_what_it_is_called_on_github(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["git", "-C", str(repo), "remote", "add", "origin", "git@github.com:acme/web.git"], check=True)
    assert main(["repo", "add", "acme/shop", str(repo)]) == 0
    assert capsys.readouterr().out == f"acme/shop is {repo}; on GitHub it is acme/web\n"
    assert main(["repo", "list"]) == 0
    assert "acme/web" in capsys.readouterr().out
    assert main(["repo", "add", "acme/shop", str(repo), "--github", "acme/other", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["github"] == "acme/other"


@pytest.mark.ruling("L1")
def test_jobs_are_listed_and_shown_with_what_they_belong_to(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = Service(Home.locate())
    assert main(["repo", "add", "acme/shop", str(repo), "--github", "acme/web"]) == 0
    other = "job-bbbbbbbbbbbb"
    seeds.write(service, seeds.task(), seeds.job(pull_request=7))
    seeds.write(service, seeds.task(other), seeds.job(other, issue=3))
    capsys.readouterr()
    for words, job_id in ((("--pr", "7"), seeds.ROOT), (("--issue", "3"), other)):
        assert main(["job", "list", *words, "--json"]) == 0
        assert [job["job_id"] for job in json.loads(capsys.readouterr().out)] == [job_id]
    for command in ("show", "tree"):
        assert main(["job", command, seeds.ROOT]) == 0
        shown = capsys.readouterr().out
        assert "pull request #7 of acme/web (https://github.com/acme/web/pull/7)" in shown
        assert main(["job", command, other, "--json"]) == 0
        binding = json.loads(capsys.readouterr().out)["belongs_to"]
        assert binding == {"what": "issue #3 of acme/web", "address": "https://github.com/acme/web/issues/3"}
