"""The terminal's own token fetches heads of private repositories (rulings L1, L2)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store.registry import agent_rows, repo_rows
from bridge.operations.orders import trees
from bridge.operations.pipelines import workflows
from bridge.operations.service import Service
from cli.main import main
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.activities.git.hub import clone, propose, served
from workflows.model.workers import Worker
from workflows.pipeline.plan import PlannedShell, RunInput
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("L1", "L2")
SECRET = "ghp_aVerySecretToken0123456789"
PIPELINE = "name: p\nrepo: acme/shop\nstages:\n  - {id: a, kind: shell, command: 'true'}\n"
ON = ["--repo", "acme/shop", "--pr", "7"]
STARTING = [
    ["agent", "ask", "scout", "look", *ON],
    ["agent", "review", "scout", "look", *ON],
    ["orchestrate", "review-panel", "Is it good?", *ON],
    ["pipeline", "run", "p", "--pr", "7"],
]


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "hub" / "shop")


@pytest.fixture
def limits() -> list[float | None]:
    """The timeouts of everything that would have been started."""
    return []


@pytest.fixture
def bases(
    home: Home,
    hub: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limits: list[float | None],
) -> Iterator[list[str]]:
    """Record the start commits of everything that would be started; only the token opens the repository."""
    seen: list[str] = []

    async def start_tree(_: Service, tree: TreeInput, __: str) -> str:
        seen.append(tree.assignment.base)
        limits.append(tree.assignment.timeout_seconds)
        return tree.root_job_id

    async def start_run(_: Service, run: RunInput) -> str:
        seen.append(run.base)
        limits.extend(stage.timeout_seconds for stage in run.stages if isinstance(stage, PlannedShell))
        return run.run_id

    monkeypatch.setattr(trees, "start", start_tree)
    monkeypatch.setattr(workflows, "start", start_run)
    checkout = clone(hub, tmp_path / "checkout")
    propose(hub, 7, "a change")
    with served(hub.parent, token=SECRET) as server:
        home.config.write_text(
            f'[github]\ntoken_env = "DESK_TOKEN"\napi_url = "{server.url}"\n'
            '[runtimes.runtime_a]\nadapter = "script"\ncommand = ["cat"]\n'
        )
        run_git(checkout, "remote", "set-url", "origin", f"{server.url}/shop/.git")
        service = Service(home)
        repo_rows.put(service.store, "acme/shop", str(checkout), service.settings.host, "acme/shop")
        worker = Worker(name="scout", runtime="shell", command=("cat",), capabilities=("ask", "review"))
        agent_rows.add(service.store, worker, ("acme/shop",))
        (tmp_path / "p.yaml").write_text(PIPELINE)
        assert main(["pipeline", "add", str(tmp_path / "p.yaml")]) == 0
        capsys.readouterr()
        yield seen


@pytest.mark.parametrize("words", STARTING, ids=lambda words: " ".join(words[:2]))
def test_with_it_work_on_a_pull_request_is_started(
    bases: list[str], hub: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setenv("DESK_TOKEN", SECRET)
    assert main(words) == 0, capsys.readouterr().err
    assert bases == [run_git(hub, "rev-parse", "refs/pull/7/head")]
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err


@pytest.mark.parametrize("words", STARTING, ids=lambda words: " ".join(words[:2]))
def test_without_it_nothing_is_and_it_says_what_to_do(
    bases: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.delenv("DESK_TOKEN", raising=False)
    assert main(words) == 3
    errors = capsys.readouterr().err
    assert "does not let the service read pull request #7" in errors
    assert "[github].token_env" in errors
    assert "ssh" in errors
    assert bases == []


@pytest.mark.ruling("O1")
@pytest.mark.parametrize("words", STARTING, ids=lambda words: " ".join(words[:2]))
def test_every_command_that_starts_work_takes_a_base(
    bases: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    checkout = tmp_path / "checkout"
    first = run_git(checkout, "rev-parse", "HEAD")
    run_git(checkout, "branch", "old")
    commit_file(checkout, "more.txt", "more\n")
    words = words[: words.index("--pr")]
    assert main([*words, "--base", "old"]) == 0, capsys.readouterr().err
    assert main(words) == 0, capsys.readouterr().err
    assert bases == [first, run_git(checkout, "rev-parse", "HEAD")]
    capsys.readouterr()
    for wrong in ("nowhere", "-x", "HEAD^{tree}"):
        assert main([*words, "--base", wrong]) != 0
        errors = capsys.readouterr().err
        assert wrong in errors
        assert f"try: git -C {checkout} " in errors
    assert len(bases) == 2


@pytest.mark.ruling("A10")
@pytest.mark.parametrize("words", STARTING, ids=lambda words: " ".join(words[:2]))
def test_every_command_that_starts_work_takes_a_timeout(
    bases: list[str], limits: list[float | None], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    words = words[: words.index("--pr")]
    assert main([*words, "--timeout", "1h30m"]) == 0, capsys.readouterr().err
    assert main(words) == 0
    assert (limits, len(bases)) == ([5400.0, None], 2)
    capsys.readouterr()
    for wrong in ("90", "0s", "", "soon", "-1s", "3651d"):
        assert main([*words, f"--timeout={wrong}"]) == 2
        errors = capsys.readouterr().err
        assert f"the timeout '{wrong}'" in errors, errors
    assert limits == [5400.0, None]
