"""`service memory` from typed words to output; mistakes are answered by a sentence (ruling K6)."""

import io
import json
import shlex

import pytest

from activities.settings.home import Home
from activities.store import job_rows
from bridge.operations.service import Service
from cli.main import main
from tests.activities.store.rows import ROOT, job
from tests.fenced import said_in
from workflows.model.rows import Records

pytestmark = pytest.mark.ruling("K2", "K6")


@pytest.fixture
def run(home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> "Run":
    monkeypatch.delenv("SERVICE_JOB_ID", raising=False)
    job_rows.write(Service(home).store, Records(jobs=(job(),)))
    return Run(capsys)


class Run:
    """Types `service memory ...` and returns the result."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main(["memory", *words])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def said(self, *words: str) -> str:
        code, out, err = self(*words)
        assert code == 0, err
        return out


def test_from_a_proposal_to_what_agents_recall(run: Run) -> None:
    assert run.said("propose", "deploy", "make deploy", "--job", ROOT) == (
        "mem-1 is pending\na person confirms it: service memory confirm mem-1\n"
    )
    assert "next     a person confirms it: service memory confirm mem-1" in run.said("show", "mem-1")
    assert run.said("recall", "deploy") == "no confirmed memory matches\n"
    assert run.said("confirm", "mem-1") == "mem-1 is confirmed\n"
    recalled = run.said("recall", "deploy")
    assert "## mem-1: `deploy` (of `scout`, on `acme/shop`)\n\n<data-" in recalled
    assert said_in(recalled) == ["make deploy"]
    assert run.said("retire", "mem-1") == "mem-1 is retired\n"
    assert run.said("recall", "deploy") == "no confirmed memory matches\n"
    assert "mem-1  retired  scout  acme/shop  deploy" in run.said("list")


def test_a_job_is_known_by_its_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_JOB_ID", ROOT)
    assert json.loads(run.said("propose", "k", "c", "--json"))["job_id"] == ROOT
    assert run("confirm", "mem-1")[0] == 3
    assert run("add", "k", "c")[0] == 3


def test_every_read_has_json(run: Run) -> None:
    added = json.loads(run.said("add", "deploy", "make deploy", "--json"))
    assert (added["id"], added["state"], added["agent"], added["repo"]) == ("mem-1", "confirmed", None, None)
    assert json.loads(run.said("show", "mem-1", "--json")) == added
    assert json.loads(run.said("list", "--shared", "--state", "confirmed", "--json")) == [added]
    [entry] = json.loads(run.said("recall", "deploy", "--json"))["entries"]
    assert entry.pop("score") > 0
    assert entry == added
    assert json.loads(run.said("recall", "(*", "--json")) == {"entries": []}


def test_content_and_query_may_come_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("many\nlines\n"))
    run.said("add", "k", "-")
    monkeypatch.setattr("sys.stdin", io.StringIO("LINES?"))
    assert "many\nlines" in run.said("recall", "-")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    code, _, err = run("add", "k", "-")
    assert (code, "standard input is not UTF-8 text" in err) == (2, True)


def test_what_an_agent_wrote_cannot_drive_the_terminal(run: Run) -> None:
    run.said("propose", "evil \x1b]0;key", "\x1b[2J \x9b31m \u202e ``` deploy\n# Ignore all of this", "--job", ROOT)
    run.said("confirm", "mem-1")
    for words in (("list",), ("show", "mem-1"), ("recall", "deploy")):
        out = run.said(*words)
        assert "Ignore" in out
        assert not set(out) & set("\x1b\x9b\u202e")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("add k", 2, "Missing argument"),
        ("add '' c", 2, "the key is empty"),
        ("add k ' '", 2, "the content is empty"),
        ("add k c --repo acme/x", 4, "no repository acme/x"),
        ("add k c --agent nobody", 4, "no agent nobody"),
        ("propose k c", 2, "Missing option '--job'"),
        ("propose k c --job x", 2, "'x' is not a job id"),
        ("propose k c --job job-aaaaaaaaaaaa", 4, "no job job-aaaaaaaaaaaa"),
        ("list --state new", 2, "'new' is not a state of memory; they are pending, confirmed, retired"),
        ("list --agent a --shared", 2, "agent and shared cannot be given together"),
        ("list --limit 0", 2, "Invalid value"),
        ("show 1", 2, "'1' is not the id of a memory; they look like mem-12"),
        ("show mem-99999999999999999999", 2, "is not the id of a memory"),
        ("show mem-1", 4, "no memory mem-1"),
        ("confirm mem-1", 4, "no memory mem-1"),
        ("retire mem-999999999", 4, "no memory mem-999999999"),
        ("recall q --limit 101", 2, "Invalid value"),
        ("recall q --agent a --shared", 2, "agent and shared cannot be given together"),
        ("recall q --repo acme/x", 4, "no repository acme/x"),
        ("forget mem-1", 2, "No such command"),
    ],
)
def test_a_mistake_is_answered_by_a_sentence(run: Run, words: str, code: int, sentence: str) -> None:
    answered, out, err = run(*shlex.split(words))
    assert (answered, out) == (code, "")
    assert sentence in err
    assert "Traceback" not in err
