"""A run of a pull request starts from its head, and so do its stages."""

from pathlib import Path

import pytest

from activities.git.work_folder.worktrees import tip
from activities.pipelines.plan import NotRunnableError, plan
from activities.settings.home import Home
from activities.settings.model import Github, Settings
from activities.store.artifacts import Artifacts
from activities.store.database import open_store
from activities.store.registry import agent_rows, pipeline_rows, repo_rows
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.activities.git.hub import clone, propose, served
from workflows.model.errors import NotFoundError, UsageError
from workflows.model.workers import Worker
from workflows.pipeline.plan import PlannedAgent, RunInput, Trigger
from workflows.pipeline.read import read
from workflows.pipeline.syntax import Format

pytestmark = pytest.mark.ruling("L1")
STAGES = """
name: p
repo: acme/shop
stages:
  - {id: look, kind: shell, command: "true"}
  - {id: ask, kind: agent, agent: scout, action: ask, prompt: Look}
  - {id: other, kind: agent, agent: scout, action: ask, prompt: Look, pull_request: 8}
  - {id: note, kind: agent, agent: scout, action: ask, prompt: Look, issue: 3}
"""


class Desk:
    """A registered checkout of a hub with pull requests, and a pipeline on it."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home, self.store, self.settings = home, open_store(home), Settings()
        self.token: str | None = None
        self.hub = make_repository(folder / "hub" / "shop")
        self.checkout = clone(self.hub, folder / "checkout")
        agent_rows.add(self.store, Worker(name="scout", runtime="shell", command=("cat",), capabilities=("ask",)), ())
        self.registered("acme/shop")
        agent_rows.allow(self.store, "scout", "acme/shop")

    def registered(self, github: str, host: str = "") -> None:
        repo_rows.put(self.store, "acme/shop", str(self.checkout), host or self.settings.host, github)

    def plan(self, stages: str = STAGES, **belongs_to: int | str) -> RunInput:
        pipeline_rows.put(self.store, read(stages, Format.YAML), stages, Format.YAML)
        artifacts = Artifacts(self.home.artifacts)
        asked: dict[str, object] = {"name": "p", "run_id": "prun-1", "payload": {}, "token": self.token}
        return plan(self.store, self.settings, artifacts, trigger=Trigger.CLI, **asked, **belongs_to)  # type: ignore[arg-type]


@pytest.fixture
def desk(home: Home, tmp_path: Path) -> Desk:
    return Desk(home, tmp_path)


def stages(start: RunInput) -> dict[str, tuple[int | None, int | None, str, str]]:
    asked = {each.id: each.assignment for each in start.stages if isinstance(each, PlannedAgent)}
    return {name: (each.pull_request, each.issue, each.github, each.base) for name, each in asked.items()}


def test_stages_belong_to_what_the_run_does_unless_they_say_otherwise(desk: Desk) -> None:
    seven, eight = propose(desk.hub, 7, "one"), propose(desk.hub, 8, "two")
    start = desk.plan(pull_request=7)
    assert (start.pull_request, start.issue, start.github, start.base) == (7, None, "acme/shop", seven)
    assert stages(start) == {
        "ask": (7, None, "acme/shop", seven),
        "other": (8, None, "acme/shop", eight),
        "note": (None, 3, "acme/shop", ""),
    }


def test_a_run_without_a_pull_request_starts_from_head(desk: Desk) -> None:
    eight = propose(desk.hub, 8, "two")
    start = desk.plan()
    assert (start.pull_request, start.issue, start.base) == (None, None, tip(desk.checkout))
    assert stages(start) == {
        "ask": (None, None, "", tip(desk.checkout)),
        "other": (8, None, "acme/shop", eight),
        "note": (None, 3, "acme/shop", ""),
    }


def test_a_run_of_an_issue_starts_from_the_tip(desk: Desk) -> None:
    propose(desk.hub, 8, "two")
    start = desk.plan(issue=12)
    assert (start.issue, start.github, start.base) == (12, "acme/shop", tip(desk.checkout))
    assert stages(start)["ask"] == (None, 12, "acme/shop", tip(desk.checkout))


def test_a_repository_without_a_name_on_github_is_told_how_to_get_one(desk: Desk) -> None:
    desk.registered("")
    with pytest.raises(NotRunnableError, match="the repository acme/shop has no GitHub name") as refused:
        desk.plan(pull_request=7)
    assert refused.value.hint == f"service repo add acme/shop {desk.checkout} --github OWNER/NAME"


def test_an_invalid_binding_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="not to both"):
        desk.plan(pull_request=7, issue=7)
    with pytest.raises(NotFoundError, match="there is no pull request #8"):
        desk.plan()


def test_a_checkout_on_another_host_is_not_fetched_into_here(desk: Desk) -> None:
    propose(desk.hub, 7, "one")
    desk.registered("acme/shop", host="web-1")
    with pytest.raises(NotRunnableError, match="is on the host web-1, not here") as refused:
        desk.plan(pull_request=7)
    assert refused.value.hint == "ssh web-1"
    assert run_git(desk.checkout, "for-each-ref", "refs/service") == ""


def test_on_a_github_of_its_own_stages_know_its_address(desk: Desk) -> None:
    desk.settings = Settings(github=Github(api_url="https://ghe.example/api/v3"))
    run_git(desk.checkout, "remote", "set-url", "origin", "git@ghe.example:acme/shop.git")
    run_git(desk.checkout, "config", f"url.{desk.hub}.insteadOf", "git@ghe.example:acme/shop.git")
    propose(desk.hub, 7, "one"), propose(desk.hub, 8, "two")
    asked = [each.assignment for each in desk.plan(pull_request=7).stages if isinstance(each, PlannedAgent)]
    assert [each.web for each in asked] == ["https://ghe.example"] * 3
    run_git(desk.checkout, "remote", "remove", "origin")
    with pytest.raises(NotRunnableError, match="has no remote to fetch acme/shop from") as refused:
        desk.plan()
    assert refused.value.hint.endswith("remote add origin https://ghe.example/acme/shop.git")


def test_a_token_opens_a_private_repository(desk: Desk) -> None:
    head, _ = propose(desk.hub, 7, "one"), propose(desk.hub, 8, "two")
    with served(desk.hub.parent, token="t-1") as server:
        desk.settings = Settings(github=Github(api_url=server.url))
        run_git(desk.checkout, "remote", "set-url", "origin", f"{server.url}/shop/.git")
        with pytest.raises(NotRunnableError, match="does not let the service read pull request #7"):
            desk.plan(pull_request=7)
        desk.token = "t-1"
        assert desk.plan(pull_request=7).base == head


@pytest.mark.ruling("O1")
class TestTheBase:
    @pytest.fixture
    def first(self, desk: Desk) -> str:
        """Return the commit before the one that is checked out, also named `old`."""
        first = tip(desk.checkout)
        run_git(desk.checkout, "branch", "old")
        commit_file(desk.checkout, "more.txt", "more\n")
        return first

    def test_the_base_comes_from_the_caller_or_the_file(self, desk: Desk, first: str) -> None:
        eight = propose(desk.hub, 8, "two")
        for start in (desk.plan(base="old"), desk.plan(STAGES + "base: old\n"), desk.plan(STAGES, base=first[:12])):
            assert start.base == first
            assert [base for *_, base in stages(start).values()] == [first, eight, ""]
        assert desk.plan(STAGES + "base: nowhere\n", base="old").base == first

    def test_the_base_wins_over_the_head_of_the_run_s_pull_request(self, desk: Desk, first: str) -> None:
        propose(desk.hub, 7, "one"), propose(desk.hub, 8, "two")
        start = desk.plan(pull_request=7, base="old")
        assert (start.pull_request, start.base, stages(start)["ask"]) == (7, first, (7, None, "acme/shop", first))

    @pytest.mark.parametrize("fields", [{"base": "nowhere"}, {"stages": STAGES + "base: nowhere\n"}])
    def test_what_names_no_commit_is_refused(self, desk: Desk, fields: dict[str, str]) -> None:
        propose(desk.hub, 8, "two")
        with pytest.raises(NotFoundError, match="there is no commit nowhere in") as refused:
            desk.plan(**fields)
        assert refused.value.hint == f"git -C {desk.checkout} branch --all"

    @pytest.mark.parametrize("base", ["-x", "a b", "7", "[old]"])
    def test_what_is_no_name_is_a_fault_of_the_file(self, base: str) -> None:
        with pytest.raises(UsageError, match="base"):
            read(STAGES + f"base: {base}\n", Format.YAML)
