"""A task started, and a repository, an agent and a pipeline registered, on a page without JavaScript (ruling M4)."""

from pathlib import Path

import pytest

from activities.settings.model import Settings
from activities.store.registry import agent_rows, host_rows
from bridge.http.wire import authorization
from bridge.operations import refused_agents
from bridge.operations.orders import trees
from bridge.operations.pipelines import definitions
from bridge.operations.registry import agents, repos
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from tests.activities.git.conftest import make_repository, run_git
from tests.bridge import seeds
from tests.bridge.http.dashboard.conftest import NO_TEMPORAL
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from workflows.model.errors import UnreachableError
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("M4")
TASK, REPOSITORY, AGENT, PIPELINE = "/ui/new", "/ui/new/repository", "/ui/new/agent", "/ui/new/pipeline"
NIGHTLY = "name: nightly\nrepo: acme/shop\nstages:\n  - {id: test, kind: shell, command: make test}\n"
TASK_FAULTS: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"message": " "}, "message", "the message is empty"),
    ({"repo": ""}, "repo", "choose a repository"),
    ({"repo": "acme/other"}, "repo", "no repository acme/other; known: acme/shop"),
    ({"agent": ""}, "agent", "choose an agent or a recipe"),
    ({"agent": "nobody"}, "agent", "no agent nobody; known: scout"),
    ({"agent": "recipe:x"}, "agent", "no recipe &#39;x&#39;"),
    ({"action": "implement"}, "agent", "scout only plans and reviews: choose ask or review"),
    ({"action": "fly"}, "action", "choose what it does"),
    ({"base": "no-such"}, "base", "no-such"),
    ({"budget": "much"}, "budget", "&#39;much&#39; is not a number of dollars"),
    ({"budget": "-1"}, "budget", "must be a positive number"),
    ({"budget": "nan"}, "budget", "must be a positive number"),
    ({"timeout": "90"}, "timeout", "needs a unit"),
    ({"issue": "x"}, "issue", "is not the number of an issue"),
    ({"model": "m" * 5000}, "model", "model"),
)
REPOSITORY_FAULTS: tuple[tuple[str, str, str, str], ...] = (
    ("", "", "path", "type the path of a checkout, or a remote below"),
    ("shop", "", "path", "is not an absolute path"),
    ("/no/such", "", "path", "/no/such is not a folder"),
    ("{tmp}", "", "path", "is not a git repository"),
    ("{tmp}/shop", "shop", "name", "&#39;shop&#39; is not a repository name"),
    ("{tmp}/other", "acme/shop", "name", "acme/shop is registered already, for {tmp}/shop"),
)
AGENT_FAULTS: tuple[tuple[dict[str, str | list[str]], str, str], ...] = (
    ({"name": "scout"}, "name", "there is an agent scout already"),
    ({"name": "a b"}, "name", "is not an agent name"),
    ({"runtime": ""}, "runtime", "is not a runtime"),
    ({"command": ""}, "command", "the shell runtime needs a command"),
    ({"autonomy": "auto"}, "capabilities", "an agent that implements needs a write policy"),
    ({"repos": ["acme/other"]}, "repos", "no repository acme/other"),
    ({"session": "tree"}, "session", "has no sessions to go on in"),
)


@pytest.fixture
def shop(service: Service, tmp_path: Path) -> Path:
    """Register a repository and an agent that may work on it."""
    path = make_repository(tmp_path / "shop")
    repos.add(service, "acme/shop", path)
    agents.add(service, NewAgent("scout", "shell", command="cat", repos=("acme/shop",)))
    return path


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, service: Service) -> list[TreeInput]:
    """Collect the trees that are started, in place of Temporal."""
    inputs: list[TreeInput] = []

    async def start(_: Service, tree: TreeInput, host: str) -> str:
        inputs.append(tree)
        seeds.write(
            service, seeds.task(root_job_id=tree.root_job_id, task_id=tree.task_id), seeds.job(tree.root_job_id)
        )
        return tree.root_job_id

    monkeypatch.setattr(trees, "start", start)
    return inputs


def configure(service: Service, text: str) -> None:
    """Write settings, and have them read again."""
    service.home.config.write_text(f"{NO_TEMPORAL}{text}")
    vars(service).pop("_loaded", None)


def chosen_in(shown: Shown) -> tuple[str, str, list[str]]:
    """Return the repository, the agent and the action that are chosen on the page."""
    selected = [""]
    for name in ("repo", "agent"):
        select = shown.html.partition(f'<select id="{name}"')[2].partition("</select>")[0]
        option = next((option for option in select.split("<option")[1:] if " selected" in option), "")
        selected.append(option.partition(' value="')[2].partition('"')[0] or option.partition(">")[2].partition("<")[0])
    return selected[1], selected[2], shown.form(TASK).fields["action"]


def fault(shown: Shown, field: str) -> str:
    """Return the sentence beside a field."""
    assert shown.html.count('class="fault"') == 1, shown.words
    return shown.html.partition(f'id="fault-{field}">')[2].partition("</p>")[0]


class TestTask:
    async def test_it_is_started_once_and_shown(self, ann: Surfer, shop: Path, begun: list[TreeInput]) -> None:
        form = (await ann.open(TASK)).form(TASK)
        assert form.fields["action"] == ["ask"]
        words = {"message": "Limit the rate", "repo": "acme/shop", "agent": "scout", "base": "main", "budget": "2.50"}
        first, again = await ann.send(form, "Start", **words), await ann.send(form, "Start", **words)
        for shown in (first, again):
            assert shown.address.partition("?")[0].endswith(f"/ui/trees/{begun[0].root_job_id}")
        assert "It is started." in first.words
        assert len(begun) == 1
        assert begun[0].assignment.prompt.inline == "Limit the rate"
        assert begun[0].settings.bounds.max_delegation_cost_usd == 2.5
        other = await ann.send(form, "Start", **words | {"message": "Another"})
        assert (other.status, len(begun)) == (200, 2)

    async def test_a_recipe_is_started(self, ann: Surfer, shop: Path, begun: list[TreeInput], service: Service) -> None:
        configure(service, '[runtimes.runtime_a]\nadapter = "script"\ncommand = ["cat"]\n')
        page = await ann.open(f"{TASK}?repo=acme/shop")
        shown = await ann.send(page.form(TASK), "Start", message="Check it", repo="acme/shop", agent="recipe:verifier")
        assert "the check is not independent" in shown.words.lower()
        assert [leg.action for leg in begun[0].legs] == ["implement", "review"]

    async def test_a_fault_stands_beside_its_field_and_the_words_stay(
        self, ann: Surfer, shop: Path, begun: list[TreeInput]
    ) -> None:
        form = (await ann.open(TASK)).form(TASK)
        for change, field, why in TASK_FAULTS:
            words = {"message": "Limit the rate", "repo": "acme/shop", "agent": "scout", "action": "ask"} | change
            shown = await ann.send(form, "Start", **words)
            assert shown.status in {400, 404, 409}
            assert why in fault(shown, field)
            assert begun == []
            for name in {"message", field} - {"repo", "agent", "action"}:
                assert shown.form(TASK).fields[name] == [words[name]]

    async def test_the_likely_repository_and_an_able_agent_are_chosen_first(
        self, ann: Surfer, shop: Path, service: Service
    ) -> None:
        agents.add(service, NewAgent("builder", "shell", "cat", capabilities="implement", autonomy="workspace-write"))
        agents.allow(service, "builder", "acme/shop")
        assert chosen_in(await ann.open(TASK)) == ("acme/shop", "scout", ["ask"]), "the only repository"
        assert chosen_in(await ann.open(f"{TASK}?action=implement")) == ("acme/shop", "builder", ["implement"])
        assert chosen_in(await ann.open(f"{TASK}?agent=builder")) == ("acme/shop", "builder", ["implement"])
        repos.add(service, "acme/docs", make_repository(shop.parent / "docs"))
        agents.add(service, NewAgent("writer", "shell", "cat", repos=("acme/docs",)))
        assert chosen_in(await ann.open(TASK))[0] == "", "which one is not clear"
        seeds.write(service, seeds.task(repo="acme/docs"), seeds.job(repo="acme/docs", agent="writer"))
        assert chosen_in(await ann.open(TASK)) == ("acme/docs", "writer", ["ask"]), "as in the last task"

    async def test_an_agent_that_cannot_do_it_is_refused_with_the_button_for_what_it_can(
        self, ann: Surfer, shop: Path, service: Service, begun: list[TreeInput]
    ) -> None:
        agents.add(service, NewAgent("builder", "shell", "cat", capabilities="implement", autonomy="workspace-write"))
        agents.allow(service, "builder", "acme/shop")
        words = {"message": "Limit the rate", "repo": "acme/shop", "agent": "builder", "action": "ask"}
        shown = await ann.send((await ann.open(TASK)).form(TASK), "Start", **words)
        assert fault(shown, "agent") == "builder only writes changes: choose implement"
        assert (shown.form(TASK).fields["message"], chosen_in(shown)[1]) == (["Limit the rate"], "builder")
        await ann.send(shown.form(TASK), "Choose implement and start", agent="builder", repo="acme/shop")
        assert [tree.assignment.action for tree in begun] == ["implement"]

    async def test_the_budget_is_at_most_the_setting(
        self, ann: Surfer, shop: Path, service: Service, begun: list[TreeInput]
    ) -> None:
        configure(service, "[orchestrate]\nmax_delegation_cost_usd = 5\n")
        form = (await ann.open(TASK)).form(TASK)
        words = {"message": "Limit the rate", "repo": "acme/shop", "agent": "scout"}
        shown = await ann.send(form, "Start", **words, budget="6")
        assert "the budget $6.00 is more than the $5.00" in fault(shown, "budget")
        await ann.send(shown.form(TASK), "Start", **words, budget="$4")
        assert begun[0].settings.bounds.max_delegation_cost_usd == 4

    async def test_after_an_outage_the_form_starts_what_it_started(
        self, ann: Surfer, shop: Path, begun: list[TreeInput], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start, roots = trees.start, list[str]()

        async def gone(_: Service, tree: TreeInput, host: str) -> str:
            roots.append(tree.root_job_id)
            raise UnreachableError("Temporal does not answer")

        monkeypatch.setattr(trees, "start", gone)
        form = (await ann.open(TASK)).form(TASK)
        words = {"message": "Limit the rate", "repo": "acme/shop", "agent": "scout"}
        shown = await ann.send(form, "Start", **words)
        assert (shown.status, "Temporal does not answer" in shown.words) == (503, True)
        monkeypatch.setattr(trees, "start", start)
        await ann.send(shown.form(TASK), "Start", **words)
        assert [tree.root_job_id for tree in begun] == roots

    async def test_an_agent_starts_nothing(
        self, ann: Surfer, shop: Path, begun: list[TreeInput], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def refuse(*_: object) -> None:
            raise refused_agents.UnknownCallerError("an agent asked for it", "")

        form = (await ann.open(TASK)).form(TASK)
        monkeypatch.setattr(authorization, "refuse_agents", refuse)
        shown = await ann.send(form, "Start", message="Limit the rate", repo="acme/shop", agent="scout")
        assert (shown.status, begun) == (refused_agents.UnknownCallerError.status, [])

    async def test_without_a_repository_or_an_agent_it_says_what_to_add_first(
        self, ann: Surfer, service: Service
    ) -> None:
        assert REPOSITORY in (await ann.open(TASK)).read.links
        seeds.repo(service)
        assert f"{AGENT}?repo=acme/shop" in (await ann.open(TASK)).read.links


class TestRepository:
    async def test_it_is_registered_and_an_agent_is_next(self, ann: Surfer, service: Service, tmp_path: Path) -> None:
        path = make_repository(tmp_path / "shop")
        shown = await ann.send((await ann.open(REPOSITORY)).form(REPOSITORY), path=str(path))
        assert [(repo.name, repo.path) for repo in repos.every(service)] == [("local/shop", str(path))]
        assert f"local/shop is registered, at {path}." in shown.words
        assert shown.form(AGENT).fields["repos"] == ["local/shop"]

    async def test_by_its_remote_it_needs_no_checkout(self, ann: Surfer, service: Service, tmp_path: Path) -> None:
        remote = tmp_path / "hub"
        run_git(make_repository(tmp_path / "shop"), "clone", "--quiet", "--bare", ".", str(remote))
        form = (await ann.open(REPOSITORY)).form(REPOSITORY)
        unnamed = await ann.send(form, remote=str(remote))
        assert "type a name, OWNER/NAME" in fault(unnamed, "name")
        assert unnamed.form(REPOSITORY).fields["remote"] == [str(remote)]
        shown = await ann.send(form, remote=str(remote), name="acme/shop")
        assert f"acme/shop is registered, at {remote}." in shown.words
        [repo] = repos.every(service)
        assert (repo.remote, repo.path, repo.checkouts) == (str(remote), "", {})
        assert str(remote) in (await ann.open("/ui/agents")).words
        again = await ann.send(form, remote=str(remote), name="acme/shop")
        assert f"acme/shop is registered already, for {remote}" in fault(again, "name")
        both = await ann.send(form, remote=str(remote), path=str(tmp_path / "shop"), name="acme/two")
        assert f"acme/two is registered, at {tmp_path / 'shop'} and {remote}." in both.words

    async def test_a_remote_that_does_not_answer_is_a_fault_of_its_field(self, ann: Surfer, service: Service) -> None:
        form = (await ann.open(REPOSITORY)).form(REPOSITORY)
        shown = await ann.send(form, remote="/nowhere", name="acme/shop")
        assert "/nowhere cannot be reached" in fault(shown, "remote")
        assert repos.every(service) == []

    async def test_labels_are_asked_where_hosts_share_the_store(
        self, ann: Surfer, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = make_repository(tmp_path / "shop")
        assert "require" not in (await ann.open(REPOSITORY)).form(REPOSITORY).fields
        monkeypatch.setattr(Settings, "is_fleet", property(lambda _: True))
        host_rows.see(service.store, "web-1", slots=4, started_at=1.0, labels=("os:linux",))
        page = await ann.open(REPOSITORY)
        assert "Labels of the hosts: os:linux" in page.words
        wrong = await ann.send(page.form(REPOSITORY), path=str(path), require="a b{")
        assert "&#39;b{&#39; is not a label" in fault(wrong, "require")
        shown = await ann.send(wrong.form(REPOSITORY), path=str(path), require="gpu, os:linux", prefer="big-disk")
        [repo] = repos.every(service)
        assert (repo.require, repo.prefer) == (("gpu", "os:linux"), ("big-disk",))
        assert "Mind that no host has the label gpu, so its jobs will wait" in shown.words
        await ann.send(shown.form(AGENT), name="mason", runtime="shell", command="cat", require="os:linux")
        mason = agent_rows.get(service.store, "mason")
        assert mason is not None
        assert (mason.require, mason.prefer) == (("os:linux",), ())

    async def test_a_fault_stands_beside_its_field(self, ann: Surfer, shop: Path, tmp_path: Path) -> None:
        make_repository(tmp_path / "other")
        form = (await ann.open(REPOSITORY)).form(REPOSITORY)
        for template, name, field, why in REPOSITORY_FAULTS:
            path = template.format(tmp=tmp_path)
            shown = await ann.send(form, path=path, name=name)
            assert why.format(tmp=tmp_path) in fault(shown, field)
            assert shown.form(REPOSITORY).fields["path"] == [path]


class TestAgent:
    async def test_it_is_registered_with_its_rights(self, ann: Surfer, shop: Path, service: Service) -> None:
        form = (await ann.open(AGENT)).form(AGENT)
        assert (form.fields["repos"], form.fields["capabilities"]) == (["acme/shop"], ["ask", "review"])
        shown = await ann.send(
            form,
            name="mason",
            runtime="shell",
            command="sh build.sh",
            capabilities=["ask", "implement"],
            autonomy="workspace-write",
            role="builds",
        )
        mason = agent_rows.get(service.store, "mason")
        assert mason is not None
        assert (mason.worker.command, mason.worker.role, mason.repos) == (("sh", "build.sh"), "builds", ("acme/shop",))
        assert mason.worker.capabilities == ("ask", "implement")
        assert "mason is registered." in shown.words
        assert 'value="mason" selected' in shown.html

    async def test_a_fault_stands_beside_its_field_and_the_ticks_stay(self, ann: Surfer, shop: Path) -> None:
        words: dict[str, str | list[str]] = {"name": "mason", "runtime": "shell", "command": "cat", "role": "builds"}
        words["autonomy"], words["capabilities"] = "workspace-write", ["ask", "implement"]
        form = (await ann.open(AGENT)).form(AGENT)
        for change, field, why in AGENT_FAULTS:
            shown = await ann.send(form, None, **(words | change))
            assert why in fault(shown, field)
            assert shown.form(AGENT).fields["capabilities"] == ["ask", "implement"]
            assert shown.form(AGENT).fields["role"] == ["builds"]


class TestPipeline:
    async def test_it_is_registered_and_replaced_only_on_request(
        self, ann: Surfer, shop: Path, service: Service
    ) -> None:
        form = (await ann.open(PIPELINE)).form(PIPELINE)
        shown = await ann.send(form, definition=NIGHTLY)
        assert shown.address.partition("?")[0].endswith("/ui/pipelines/nightly")
        changed = NIGHTLY.replace("make test", "make all")
        refused = await ann.send(form, definition=changed)
        assert "there is a pipeline nightly already" in fault(refused, "definition")
        await ann.send(refused.form(PIPELINE), replace="yes")
        assert definitions.get(service, "nightly").definition.replace("\r", "") == changed

    async def test_the_faults_of_a_definition_stand_beside_it(self, ann: Surfer, shop: Path) -> None:
        text = NIGHTLY.replace("command", "comand")
        shown = await ann.send((await ann.open(PIPELINE)).form(PIPELINE), definition=text)
        assert "comand" in fault(shown, "definition")
        assert shown.form(PIPELINE).fields["definition"] == [text]
        shown = await ann.send(shown.form(PIPELINE), format="toml")
        assert shown.status == 400
