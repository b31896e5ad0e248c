"""GitHub names of repositories, and the pull requests and issues of trees."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store.job_rows import JobFilter
from activities.store.registry import agent_rows, repo_rows
from bridge.operations.jobs import binding_view, jobs
from bridge.operations.orders import new_jobs, trees
from bridge.operations.registry import repos
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.activities.git.hub import clone, propose
from tests.bridge import seeds
from tests.github.hub import Hub
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError, UsageError
from workflows.model.states import JobState
from workflows.model.workers import UNRESOLVED, Worker
from workflows.pipeline.rows import RunRecord
from workflows.policy.recipes import Recipe
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("L1")
HERE = "git@github.com:acme/shop.git"


@pytest.fixture
def service(home: Home) -> Service:
    home.config.write_text('[runtimes.runtime_a]\nadapter = "script"\ncommand = ["cat"]\n')
    return Service(home)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "hub" / "shop")


@pytest.fixture
def github() -> Iterator[Hub]:
    with Hub() as hub:
        hub.repo("acme/tool")
        yield hub


@pytest.fixture
def checkout(hub: Path, tmp_path: Path) -> Path:
    return clone(hub, tmp_path / "checkout")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[TreeInput]:
    """Return a list of every tree that would have been started."""
    seen: list[TreeInput] = []

    async def start(_: Service, tree: TreeInput, __: str) -> str:
        seen.append(tree)
        return tree.root_job_id

    monkeypatch.setattr(trees, "start", start)
    return seen


def with_scout(service: Service, checkout: Path, github: str = "acme/shop") -> None:
    repos.add(service, "acme/shop", checkout, github)
    worker = Worker(name="scout", runtime="shell", command=("cat",), capabilities=("ask",))
    agent_rows.add(service.store, worker, ("acme/shop",))


class TestLearning:
    def test_it_is_learnt_from_the_remotes(self, service: Service, checkout: Path) -> None:
        assert repos.add(service, "acme/shop", checkout).github == ""
        run_git(checkout, "remote", "add", "upstream", HERE)
        assert repos.add(service, "acme/shop", checkout).github == "acme/shop"
        run_git(checkout, "remote", "set-url", "origin", "https://github.com/ann/shop")
        assert repos.add(service, "acme/shop", checkout).github == "ann/shop"

    def test_what_is_said_counts_until_the_remotes_say_otherwise(self, service: Service, checkout: Path) -> None:
        assert repos.add(service, "acme/shop", checkout, "acme/other").github == "acme/other"
        assert repos.add(service, "acme/shop", checkout).github == "acme/other"
        run_git(checkout, "remote", "set-url", "origin", HERE)
        assert repos.add(service, "acme/shop", checkout, "acme/other").github == "acme/other"
        assert repos.add(service, "acme/shop", checkout).github == "acme/shop"
        assert repos.add(service, "acme/shop", checkout, "").github == ""

    @pytest.mark.ruling("Q1")
    def test_a_repository_of_another_host_is_taken_over_only_if_asked_to_and_while_nothing_works_on_it(
        self, service: Service, checkout: Path
    ) -> None:
        repo_rows.put(service.store, "acme/shop", "/srv/shop", "web-2")
        with pytest.raises(RefusedError, match="acme/shop is registered on the host web-2, at /srv/shop") as refused:
            repos.add(service, "acme/shop", checkout)
        assert str(refused.value.hint).endswith(f"service repo add acme/shop {checkout} --move")
        seeds.write(service, seeds.task(), seeds.job())
        with pytest.raises(RefusedError, match="has 1 open job there"):
            repos.add(service, "acme/shop", checkout, move=True)
        seeds.write(service, seeds.job(state=JobState.FAILED, revision=2))
        assert repos.get(service, "acme/shop").path == "/srv/shop"
        assert repos.add(service, "acme/shop", checkout, move=True).host == service.settings.host

    @pytest.mark.parametrize("github", ["shop", "a/b/c", "../x", "acme/..", "a b/c", "https://github.com/acme/shop"])
    def test_a_name_that_is_none_is_refused(self, service: Service, checkout: Path, github: str) -> None:
        with pytest.raises(UsageError, match="is not a repository on GitHub"):
            repos.add(service, "acme/shop", checkout, github)
        assert repos.every(service) == []


class TestAGitHubOfItsOwn:
    @pytest.fixture
    def service(self, home: Home) -> Service:
        home.config.write_text('[github]\napi_url = "https://ghe.example/api/v3"\n')
        return Service(home)

    def test_names_are_learnt_from_remotes_on_its_host_alone(self, service: Service, checkout: Path) -> None:
        run_git(checkout, "remote", "set-url", "origin", HERE)
        assert repos.add(service, "acme/shop", checkout).github == ""
        run_git(checkout, "remote", "add", "work", "https://ghe.example/team/shop.git")
        assert repos.add(service, "acme/shop", checkout).github == "team/shop"

    def test_what_jobs_and_runs_belong_to_is_seen_there(self, service: Service, checkout: Path) -> None:
        repos.add(service, "acme/shop", checkout, "team/shop")
        job = seeds.job("job-cccccccccccc", pull_request=7)
        assert binding_view.belonging(service, job).address == "https://ghe.example/team/shop/pull/7"
        of_run = {"run_id": "prun-1", "pipeline": "p", "repo": "acme/shop", "issue": 3, "started_at": 1.0}
        run = RunRecord.model_validate(of_run | {"trigger": "cli", "state": "running"})
        assert (
            str(binding_view.belonging(service, run))
            == "issue #3 of team/shop (https://ghe.example/team/shop/issues/3)"
        )

    async def test_its_address_goes_with_the_tree(
        self, service: Service, hub: Path, checkout: Path, started: list[TreeInput]
    ) -> None:
        with_scout(service, checkout)
        run_git(checkout, "remote", "set-url", "origin", "git@ghe.example:acme/shop.git")
        run_git(checkout, "config", f"url.{hub}.insteadOf", "git@ghe.example:acme/shop.git")
        head = propose(hub, 7, "a change")
        await new_jobs.start(service, new_jobs.NewJob("scout", "ask", "look", "acme/shop", pull_request=7))
        assert [(tree.assignment.web, tree.assignment.base) for tree in started] == [("https://ghe.example", head)]


class TestStarting:
    async def test_a_job_on_a_pull_request_starts_from_its_head(
        self, service: Service, hub: Path, checkout: Path, started: list[TreeInput]
    ) -> None:
        head = propose(hub, 7, "a change")
        with_scout(service, checkout)
        await new_jobs.start(service, new_jobs.NewJob("scout", "ask", "look", "acme/shop", pull_request=7))
        [asked] = [tree.assignment for tree in started]
        assert (asked.pull_request, asked.issue, asked.github, asked.base) == (7, None, "acme/shop", head)
        assert asked.web == ""

    async def test_a_goal_that_the_message_only_quotes_is_its_title(
        self, service: Service, checkout: Path, started: list[TreeInput]
    ) -> None:
        with_scout(service, checkout)
        look = new_jobs.NewJob("scout", "ask", "Request of ann", "acme/shop", goal="\n\u200b Fix it\nsoon")
        await new_jobs.start(service, look)
        await new_jobs.start(service, replace(look, goal=""))
        await new_jobs.start(service, replace(look, goal="x" * 90))
        assert [tree.title for tree in started] == ["Fix it", "Request of ann", "x" * 79 + "…"]

    async def test_a_job_on_an_issue_starts_from_what_is_checked_out(
        self, service: Service, checkout: Path, started: list[TreeInput]
    ) -> None:
        with_scout(service, checkout)
        head = run_git(checkout, "rev-parse", "HEAD")
        await new_jobs.start(service, new_jobs.NewJob("scout", "ask", "look", "acme/shop", issue=3))
        [asked] = [tree.assignment for tree in started]
        assert (asked.pull_request, asked.issue, asked.github, asked.base) == (None, 3, "acme/shop", head)

    async def test_so_does_a_recipe(
        self, service: Service, hub: Path, checkout: Path, started: list[TreeInput]
    ) -> None:
        head = propose(hub, 7, "a change")
        with_scout(service, checkout)
        new = new_jobs.NewRecipe(Recipe.REVIEW_PANEL, "Is it good?", "acme/shop", pull_request=7)
        await new_jobs.orchestrate(service, new)
        assert [(tree.assignment.pull_request, tree.assignment.base) for tree in started] == [(7, head)]

    async def test_nothing_starts_where_it_cannot_be(
        self, service: Service, checkout: Path, started: list[TreeInput]
    ) -> None:
        with_scout(service, checkout, github="")
        look = new_jobs.NewJob("scout", "ask", "look", "acme/shop")
        for new in (replace(look, pull_request=7), replace(look, issue=3)):
            with pytest.raises(RefusedError, match="the repository acme/shop has no GitHub name") as refused:
                await new_jobs.start(service, new)
            assert refused.value.hint == f"service repo add acme/shop {checkout} --github OWNER/NAME"
        with pytest.raises(UsageError, match="not to both"):
            await new_jobs.start(service, replace(look, pull_request=7, issue=3))
        assert started == []


@pytest.mark.ruling("P3")
class TestItsText:
    """Title and text are stored with the tree, for every job of it that needs them."""

    @pytest.fixture
    def number(self, home: Home, github: Hub, hub: Path) -> int:
        home.config.write_text(
            f'[github]\napi_url = "{github.address}"\n[runtimes.runtime_a]\nadapter = "script"\ncommand = ["cat"]\n'
        )
        number = github.pull("topic", title="Limit the rate")
        propose(hub, number, "a change")
        return number

    async def test_of_a_job_and_of_a_recipe(
        self, home: Home, number: int, github: Hub, checkout: Path, started: list[TreeInput]
    ) -> None:
        service, token = Service(home), github.user("helper", role="write")
        with_scout(service, checkout, "acme/tool")
        job = new_jobs.NewJob("scout", "ask", "look", "acme/shop", pull_request=number)
        await new_jobs.start(service, job, token=token)
        recipe = new_jobs.NewRecipe(Recipe.REVIEW_PANEL, "Is it good?", "acme/shop", pull_request=number)
        await new_jobs.orchestrate(service, recipe, token)
        for asked in [tree.assignment for tree in started]:
            assert asked.about is not None
            assert (service.artifacts.read(asked.about), asked.into) == ("Limit the rate", "main")

    async def test_nobody_is_asked_without_a_token(
        self, home: Home, number: int, github: Hub, checkout: Path, started: list[TreeInput]
    ) -> None:
        service, before = Service(home), len(github.requests)
        with_scout(service, checkout, "acme/tool")
        await new_jobs.start(service, new_jobs.NewJob("scout", "ask", "look", "acme/shop", pull_request=number))
        assert [tree.assignment.about for tree in started] == [None]
        assert len(github.requests) == before


@pytest.mark.ruling("O1")
class TestTheBase:
    """A tree begins from one commit, which is resolved when it starts."""

    LOOK = new_jobs.NewJob("scout", "ask", "look", "acme/shop")

    @pytest.fixture
    def first(self, service: Service, checkout: Path) -> str:
        """Return the commit before the one that is checked out."""
        with_scout(service, checkout)
        first = run_git(checkout, "rev-parse", "HEAD")
        commit_file(checkout, "more.txt", "more\n")
        return first

    async def test_it_is_what_is_checked_out_when_the_tree_starts(
        self, service: Service, checkout: Path, first: str, started: list[TreeInput]
    ) -> None:
        await new_jobs.start(service, self.LOOK)
        await new_jobs.orchestrate(service, new_jobs.NewRecipe(Recipe.REVIEW_PANEL, "Is it good?", "acme/shop"))
        head = run_git(checkout, "rev-parse", "HEAD")
        assert [tree.assignment.base for tree in started] == [head, head]

    @pytest.mark.parametrize("ref", ["old", "v1", "v2", "HEAD~1", "{commit}", "{short}", "refs/heads/old"])
    async def test_a_reference_is_resolved_to_its_commit(
        self, service: Service, checkout: Path, first: str, started: list[TreeInput], ref: str
    ) -> None:
        run_git(checkout, "branch", "old", first)
        run_git(checkout, "tag", "v1", first)
        run_git(checkout, "tag", "-a", "-m", "second", "v2", first)
        ref = ref.format(commit=first, short=first[:10])
        await new_jobs.start(service, replace(self.LOOK, base=ref))
        new = new_jobs.NewRecipe(Recipe.REVIEW_PANEL, "Is it good?", "acme/shop", base=ref)
        await new_jobs.orchestrate(service, new)
        assert [tree.assignment.base for tree in started] == [first, first]

    async def test_it_goes_before_the_head_of_a_pull_request(
        self, service: Service, hub: Path, first: str, started: list[TreeInput]
    ) -> None:
        propose(hub, 7, "a change")
        head = propose(hub, 8, "another")
        await new_jobs.start(service, replace(self.LOOK, pull_request=7, base=first))
        await new_jobs.start(service, replace(self.LOOK, pull_request=8, base=head[:12]))
        one, other = (tree.assignment for tree in started)
        assert (one.pull_request, one.base, one.head) == (7, first, run_git(hub, "rev-parse", "refs/pull/7/head"))
        assert (other.pull_request, other.base, other.head) == (8, head, "")

    @pytest.mark.parametrize(
        ("ref", "why"),
        [
            ("nowhere", "there is no commit nowhere in"),
            ("-x", "there is no commit -x in"),
            ("--help", "there is no commit --help in"),
            ("a\0b", "there is no commit"),
            ("\udcff", "there is no commit"),
            ("0" * 40, "there is no commit 0000"),
            ("HEAD^{tree}", "'HEAD^{tree}' is a tree in"),
            ("HEAD:readme.md", "'HEAD:readme.md' is a blob in"),
            ("of-a-tree", "'of-a-tree' is a tag in"),
            ("", "the base '' names no commit"),
            ("x" * 300, "names no commit"),
        ],
    )
    async def test_what_names_no_commit_is_refused_and_nothing_starts(
        self, service: Service, checkout: Path, first: str, started: list[TreeInput], ref: str, why: str
    ) -> None:
        run_git(checkout, "tag", "-a", "-m", "a tree", "of-a-tree", "HEAD^{tree}")
        with pytest.raises(ServiceError) as refused:
            await new_jobs.start(service, replace(self.LOOK, base=ref))
        assert why in refused.value.message
        assert started == []
        assert str(checkout) in refused.value.hint or refused.value.hint.startswith("--base REF")
        if refused.value.hint.startswith("git "):
            run_git(checkout, *shlex.split(refused.value.hint)[3:])

    async def test_a_commit_of_another_repository_is_refused(
        self, service: Service, tmp_path: Path, first: str, started: list[TreeInput]
    ) -> None:
        other = make_repository(tmp_path / "other", own="other\n")
        with pytest.raises(NotFoundError, match="there is no commit"):
            await new_jobs.start(service, replace(self.LOOK, base=run_git(other, "rev-parse", "HEAD")))
        assert started == []

    async def test_on_another_host_it_is_a_commit_id(
        self, service: Service, checkout: Path, first: str, started: list[TreeInput]
    ) -> None:
        repo_rows.put(service.store, "acme/shop", "/there/the shop", "far", "acme/shop")
        await new_jobs.start(service, replace(self.LOOK, base=first))
        await new_jobs.start(service, self.LOOK)
        assert [tree.assignment.base for tree in started] == [first, UNRESOLVED]
        with pytest.raises(RefusedError, match="give the base as a whole commit id, not as 'main'") as refused:
            await new_jobs.start(service, replace(self.LOOK, base="main"))
        assert refused.value.hint.startswith("ssh far ")
        typed = shlex.split(shlex.split(refused.value.hint.partition(", and")[0])[2])
        assert typed == ["git", "-C", "/there/the shop", "rev-parse", "--verify", "main^{commit}"]

    @pytest.mark.ruling("Q3")
    async def test_with_a_remote_it_is_what_the_remote_has_at_that_moment(
        self, service: Service, checkout: Path, first: str, tmp_path: Path, started: list[TreeInput]
    ) -> None:
        forge = tmp_path / "forge.git"
        run_git(tmp_path, "clone", "-q", "--bare", str(checkout), str(forge))
        repo_rows.remove(service.store, "acme/shop")
        repos.add(service, "acme/shop", None, remote=str(forge))
        agent_rows.allow(service.store, self.LOOK.agent, "acme/shop")
        pushed = commit_file(checkout, "new.txt", "new\n")
        run_git(checkout, "push", "-q", str(forge), "HEAD:main", "HEAD~1:refs/heads/topic")
        await new_jobs.start(service, self.LOOK)
        await new_jobs.start(service, replace(self.LOOK, base="topic"))
        before = run_git(checkout, "rev-parse", "HEAD~1")
        assert [each.assignment.base for each in started] == [pushed, before]
        forge.rename(tmp_path / "away.git")
        await new_jobs.start(service, self.LOOK)
        assert started[2].assignment.base == UNRESOLVED, "its first job waits for the remote"
        with pytest.raises(UnreachableError, match="cannot be reached"):
            await new_jobs.start(service, replace(self.LOOK, base="topic"))
        assert len(started) == 3

    @pytest.mark.ruling("Q3")
    async def test_a_commit_that_only_the_checkout_has_is_shared_with_other_hosts(
        self, service: Service, checkout: Path, first: str, tmp_path: Path, started: list[TreeInput]
    ) -> None:
        forge = tmp_path / "forge.git"
        run_git(tmp_path, "clone", "-q", "--bare", str(checkout), str(forge))
        repos.add(service, "acme/shop", checkout, remote=str(forge))
        mine = commit_file(checkout, "mine.txt", "mine\n")
        await new_jobs.start(service, self.LOOK)
        assert [each.assignment.base for each in started] == [mine]
        assert run_git(forge, "for-each-ref", "--format=%(refname)", "refs/service") == f"refs/service/base/{mine}"
        run_git(checkout, "remote", "add", "hub", str(forge))
        run_git(checkout, "push", "-q", "hub", "HEAD:main")
        run_git(checkout, "fetch", "-q", "hub")
        forge.rename(tmp_path / "away.git")
        await new_jobs.start(service, self.LOOK)  # nothing is to be pushed, so the hub is not asked
        assert len(started) == 2
        other = commit_file(checkout, "other.txt", "other\n")
        with pytest.raises(UnreachableError, match=f"begin from {other[:12]}, which is only on this host: .*reached"):
            await new_jobs.start(service, self.LOOK)
        await new_jobs.start(service, replace(self.LOOK, base="hub/main"))
        assert started[2].assignment.base == mine


def test_jobs_are_found_by_what_they_belong_to_and_lead_there(service: Service, checkout: Path) -> None:
    repos.add(service, "acme/shop", checkout, "acme/web")
    others = {name: seeds.job(f"job-{name * 12}") for name in "ab"}
    of_pr = seeds.job("job-cccccccccccc", pull_request=7)
    of_issue = seeds.job("job-dddddddddddd", issue=7)
    seeds.write(service, *others.values(), of_pr, of_issue)
    assert [job.job_id for job in jobs.find(service, JobFilter(pull_request=7))] == [of_pr.job_id]
    assert [job.job_id for job in jobs.find(service, JobFilter(issue=7))] == [of_issue.job_id]
    assert str(binding_view.belonging(service, of_pr)) == (
        "pull request #7 of acme/web (https://github.com/acme/web/pull/7)"
    )
    assert (
        str(binding_view.belonging(service, of_issue)) == "issue #7 of acme/web (https://github.com/acme/web/issues/7)"
    )
    assert binding_view.belonging(service, others["a"]) == binding_view.NOTHING


async def test_a_tree_that_is_lost_is_started_anew_for_the_same(
    service: Service, checkout: Path, started: list[TreeInput]
) -> None:
    with_scout(service, checkout)
    await new_jobs.start(service, new_jobs.NewJob("scout", "ask", "look", "acme/shop", issue=3))
    assert started[0].anew == "service agent ask scout look --repo acme/shop --issue 3"
