"""`service init`: survey, plan and registration."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from activities.runtimes.known_runtimes import CODEX
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store.registry import host_rows
from activities.store.registry.agent_rows import Agent
from bridge.operations.health import runtimes
from bridge.operations.health.runtimes import RuntimeStatus
from bridge.operations.registry import agents, init, repos
from bridge.operations.registry.agents import NewAgent
from bridge.operations.registry.init import InitPlan, Programs, Standing
from bridge.operations.service import Service
from cli.asking.init import in_words
from tests.installed import Machine
from workflows.model.errors import Commands, RefusedError, ServiceError, UsageError

pytestmark = pytest.mark.ruling("engine:init")

A, B, C = "runtime_a", "runtime_b", "runtime_c"
LOOKS = {"capabilities": "ask,review", "autonomy": "read-only"}


@pytest.fixture
def service(home: Home) -> Service:
    return Service(home)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Create a repository with a commit."""
    path = tmp_path / "shop"
    git(path, "init", "-q", str(path))
    commit(path)
    return path


def git(path: Path, *words: str) -> None:
    path.mkdir(exist_ok=True)
    subprocess.run(["git", "-C", str(path), *words], check=True)


def commit(path: Path) -> None:
    git(path, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "--allow-empty", "-m", "x")


def planned(service: Service, path: Path, name: str = "acme/shop", programs: Programs | None = None) -> InitPlan:
    return init.plan(service, init.checkout(service, path), name, programs or Programs(A, B))


def standings(plan: InitPlan) -> dict[str, Standing]:
    return {each.new.name: each.standing for each in plan.members}


def add(service: Service, name: str, *on: str, **how: Any) -> None:
    agents.add(service, NewAgent(name, **({"runtime": A} | LOOKS | how), repos=on))


def here(
    name: str, *, works: bool = True, logged_in: bool | None = True, version: str | None = "9.9.9"
) -> RuntimeStatus:
    return RuntimeStatus(name, f"the {name}", works, "says", version=version, logged_in=logged_in, fix="do this")


def test_the_first_program_that_works_builds_and_another_one_checks() -> None:
    runtimes = [here(A, works=False, logged_in=False), here(B, logged_in=None), here(C), here("shell")]
    usable = init.usable(runtimes)
    assert [each.name for each in usable] == [C, B]
    assert init.choose(usable) == Programs(builder=C, checker=B)
    assert init.choose(usable, builder=B) == Programs(B, C)
    assert init.choose(usable, checker=C) == Programs(B, C)
    assert init.choose(usable, B, B) == Programs(B, B)
    assert init.choose(usable[:1]) == Programs(C, C)
    with pytest.raises(UsageError, match=f"'{A}' cannot be used here; there is the {C}, the {B}"):
        init.choose(usable, A)


def test_where_none_is_logged_in_those_that_are_installed_are_taken() -> None:
    gone = here(A, works=False, logged_in=None, version=None)
    assert init.usable([gone, here(B, works=False, logged_in=False)])[0].name == B


def test_without_a_program_it_says_which_can_be_installed(service: Service, machine: Machine) -> None:
    with pytest.raises(RefusedError, match="nothing was registered") as refused:
        init.usable(runtimes.check_runtimes(service))
    assert isinstance(refused.value.hint, Commands)
    assert refused.value.hint.commands[0] == "npm install -g @openai/codex"
    assert refused.value.hint.commands[-2:] == ("service init", "service demo")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_repository_is_found_from_below_and_has_its_name_from_origin(service: Service, shop: Path) -> None:
    assert init.checkout(service, shop).name == "local/shop"
    git(shop, "remote", "add", "upstream", "https://github.com/other/shop")
    git(shop, "remote", "add", "origin", "git@github.com:acme/web.shop.git")
    (shop / "src").mkdir()
    checkout = init.checkout(service, shop / "src")
    assert (checkout.top, checkout.name, checkout.github, checkout.known) == (
        shop,
        "acme/web.shop",
        "acme/web.shop",
        (),
    )


@pytest.mark.parametrize(("folder", "name"), [("my shop!", "local/my-shop"), ("--", "local/repository")])
def test_a_folder_of_any_name_gets_a_name_that_can_be_registered(
    service: Service, tmp_path: Path, folder: str, name: str
) -> None:
    path = tmp_path / folder
    git(path, "init", "-q")
    commit(path)
    assert init.checkout(service, path).name == name
    repos.check_name(name)


def test_what_no_job_could_work_on_is_said_first(service: Service, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="is not a git repository"):
        init.checkout(service, tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(ServiceError, match="has no commit yet") as none:
        init.checkout(service, tmp_path)
    assert none.value.hint == f"git -C {tmp_path} commit --allow-empty -m start"


def test_all_is_registered_and_the_second_time_nothing_changes(service: Service, shop: Path) -> None:
    plan = planned(service, shop)
    assert plan.changes
    repo, _ = init.carry_out(service, plan)
    assert (repo.name, repo.path) == ("acme/shop", str(shop))
    known = {each.worker.name: each for each in agents.every(service)}
    assert {name: each.worker.runtime for name, each in known.items()} == {"lead": A, "builder": A, "checker": B}
    assert {name: str(each.worker.autonomy_policy) for name, each in known.items()} == {
        "lead": "read-only",
        "builder": "workspace-write",
        "checker": "danger-full-access",
    }
    assert {name: each.worker.capabilities for name, each in known.items()} == {
        "lead": ("ask", "review"),
        "builder": ("implement",),
        "checker": ("review",),
    }
    again = planned(service, shop, init.checkout(service, shop).name, Programs(C, C))
    assert (again.changes, set(standings(again).values())) == (False, {Standing.THERE})
    assert init.carry_out(service, again) == (repo, again)
    assert {each.worker.name: each for each in agents.every(service)} == known


def test_in_a_second_repository_the_same_team_may_work_too(service: Service, shop: Path, tmp_path: Path) -> None:
    init.carry_out(service, planned(service, shop))
    other = tmp_path / "other"
    git(other, "init", "-q")
    commit(other)
    plan = planned(service, other, "acme/other")
    assert set(standings(plan).values()) == {Standing.ALLOWED}
    init.carry_out(service, plan)
    assert {each.repos for each in agents.every(service)} == {("acme/other", "acme/shop")}


@pytest.mark.parametrize(
    "how",
    [
        {"capabilities": "ask,review,implement", "autonomy": "workspace-write"},
        {"autonomy": "danger-full-access"},
        {"capabilities": "ask"},
    ],
)
def test_an_agent_of_other_rights_under_a_name_of_the_team_is_left_alone(
    service: Service, shop: Path, how: dict[str, str]
) -> None:
    add(service, "lead", **how)
    before = agents.get(service, "lead")
    plan = planned(service, shop)
    assert standings(plan)["lead"] is Standing.OTHER
    init.carry_out(service, plan)
    assert agents.get(service, "lead") == before
    assert not any("agent ask lead" in each for each in init.next_commands(service, plan, [here(A), here(B)]))


def test_a_name_that_another_checkout_has_stays_with_it(service: Service, shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(other, "init", "-q")
    repos.add(service, "acme/shop", other)
    with pytest.raises(RefusedError, match=f"acme/shop is registered already, for {other}"):
        planned(service, shop)
    repos.add(service, "acme/own", shop)
    repos.add(service, "acme/second", shop)
    assert init.checkout(service, shop).name == "acme/own"
    assert planned(service, shop, "acme/second").is_known
    with pytest.raises(RefusedError, match=f"{shop} is registered already, as acme/own, acme/second"):
        planned(service, shop, "acme/new")


def test_it_says_that_agents_are_in_boxes_only_where_they_are(service: Service, home: Home, shop: Path) -> None:
    assert init.is_boxed(service, planned(service, shop))
    home.config.write_text('[runtimes.runtime_b]\nbox = "none"\n')
    assert not init.is_boxed(Service(home), planned(service, shop))
    assert init.is_boxed(Service(home), planned(service, shop, programs=Programs(A, A)))


@pytest.mark.parametrize("last", ["builder", "checker"])
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), RefusedError("there is one already")])
def test_whatever_comes_between_leaves_nothing_behind(
    service: Service, shop: Path, monkeypatch: pytest.MonkeyPatch, last: str, fault: BaseException
) -> None:
    add(service, "lead")
    usual = agents.add

    def interrupted(to: Service, new: NewAgent) -> Agent:
        if new.name == last:
            raise fault
        return usual(to, new)

    monkeypatch.setattr(agents, "add", interrupted)
    with pytest.raises(type(fault)):
        init.carry_out(service, planned(service, shop))
    assert repos.every(service) == []
    assert [(each.worker.name, each.repos) for each in agents.every(service)] == [("lead", ())]


def test_the_next_commands_are_those_that_work(service: Service, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(service, shop)
    init.carry_out(service, plan)
    usable = [here(A), here(B)]
    first = [each.split(' "')[0] for each in init.next_commands(service, plan, usable)]
    assert first == ["service daemon start", "service agent ask lead", "service agent implement builder"]
    without = init.next_commands(service, plan, [here(A, works=False, logged_in=False), here(B)])
    assert without[:2] == ["service runtime check codex", "service daemon start"]
    monkeypatch.setattr(init, "runs", lambda _: True)
    assert init.next_commands(service, plan, usable)[2] == "service attention"
    assert len(without) == 3


@pytest.mark.parametrize(("works", "tried"), [(True, True), (False, False)])
def test_it_is_tried_only_with_a_program_that_works(service: Service, shop: Path, works: bool, tried: bool) -> None:
    usable = [here(A, works=works, logged_in=works), here(B)]
    assert init.may_be_tried(service, planned(service, shop), usable) is tried
    add(service, "lead", capabilities="implement", autonomy="workspace-write")
    assert not init.may_be_tried(service, planned(service, shop), usable)


@pytest.mark.parametrize(
    ("installed", "logged_in", "says"),
    [
        ((), False, "codex is not installed: npm install -g @openai/codex"),
        (("codex",), False, CODEX.name + " is not logged in: " + CODEX.way_in),
        (("codex",), True, ""),
    ],
)
def test_what_the_agents_of_a_runtime_lack_is_known_without_running_it(
    service: Service,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    installed: tuple[str, ...],
    logged_in: bool,
    says: str,
) -> None:
    machine.install(*installed, logged_in=logged_in)
    monkeypatch.setattr(subprocess, "run", None)
    assert runtimes.lacks(service, A) == says
    assert runtimes.lacks(service, "shell") == ""


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hosts share the store."""
    monkeypatch.setattr(Settings, "is_fleet", property(lambda _: True))


def clone(bare: Path, shop: Path) -> None:
    """Give a repository a remote."""
    git(bare, "init", "-q", "--bare", "-b", "main")
    git(shop, "remote", "add", "origin", str(bare))
    git(shop, "push", "-q", "origin", "HEAD:main")


def survey(service: Service, shop: Path, name: str = "acme/shop") -> InitPlan:
    return init.plan(service, init.reach(service, init.checkout(service, shop)), name, Programs(A, B))


@pytest.mark.ruling("Q1.init")
@pytest.mark.usefixtures("fleet")
class TestInAFleet:
    def test_the_repository_gets_its_remote_so_that_every_host_works_on_it(
        self, service: Service, shop: Path, tmp_path: Path
    ) -> None:
        clone(tmp_path / "hub", shop)
        repo, plan = init.carry_out(service, survey(service, shop))
        assert (repo.remote, repo.default_branch, repo.path) == (str(tmp_path / "hub"), "main", str(shop))
        assert plan.checkout.alone is None
        assert in_words(service, plan)[0] == f"acme/shop: registered ({shop}), for every host at {tmp_path / 'hub'}"

    def test_a_clone_on_another_host_is_a_checkout_of_the_same_repository(
        self, service: Service, shop: Path, tmp_path: Path
    ) -> None:
        clone(tmp_path / "hub", shop)
        init.carry_out(service, survey(service, shop))
        subprocess.run(["git", "clone", "-q", str(tmp_path / "hub"), str(tmp_path / "copy")], check=True)
        service.home.config.write_text('[worker]\nhost = "two"\n')
        two = Service(service.home)
        assert init.checkout(two, tmp_path / "copy").name == "acme/shop"
        repo, plan = init.carry_out(two, survey(two, tmp_path / "copy"))
        assert repo.checkouts == {service.settings.host: str(shop), "two": str(tmp_path / "copy")}
        assert in_words(service, plan)[0] == f"acme/shop: registered ({tmp_path / 'copy'}), as other hosts work on it"
        with pytest.raises(RefusedError, match="acme/shop is registered already, for"):
            survey(two, other(tmp_path / "other"))

    @pytest.mark.parametrize(
        ("origin", "why", "ways"),
        [
            ("", "it has no remote origin", ["git -C SHOP remote add origin URL", "--remote URL"]),
            ("x\nFORGED", r"'x\nFORGED' is not a URL or a path", ["--remote URL"]),
            ("/nowhere", "/nowhere cannot be reached: ", ["git ls-remote /nowhere", "--remote /nowhere"]),
            (
                "https://ann:secret@localhost:1/shop",
                "the remote's address holds a password, which would be stored",
                ["git config --global credential.helper store", "--remote https://localhost:1/shop"],
            ),
        ],
    )
    def test_without_a_remote_that_answers_the_checkout_is_registered_alone(
        self, service: Service, shop: Path, origin: str, why: str, ways: list[str]
    ) -> None:
        if origin:
            git(shop, "remote", "add", "origin", origin)
        plan = survey(service, shop)
        first, *more = in_words(service, plan)[: len(ways) + 1]
        assert f"acme/shop: registered ({shop}), for this host only: {why}" in first
        assert [line.endswith(way.replace("SHOP", str(shop))) for line, way in zip(more, ways, strict=True)] == [
            True
        ] * len(ways)
        assert "secret" not in "".join([first, *more])
        repo, _ = init.carry_out(service, plan)
        assert (repo.remote, repo.path) == ("", str(shop))

    def test_a_remote_that_takes_no_work_is_found_out_in_time(
        self, service: Service, shop: Path, tmp_path: Path
    ) -> None:
        clone(tmp_path / "hub", shop)
        hook = tmp_path / "hub" / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        plan = survey(service, shop)
        assert plan.checkout.alone is None
        repo, done = init.carry_out(service, plan)
        assert (repo.remote, repo.path) == ("", str(shop))
        first, *more = in_words(service, done)
        assert "refuses the service's work" in first
        assert "\n" not in first
        assert more[1].endswith(f"service repo add acme/shop --remote {tmp_path / 'hub'}")

    def test_the_next_command_is_to_invite_another_host(
        self, service: Service, shop: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(init, "runs", lambda _: True)
        _, plan = init.carry_out(service, survey(service, shop))
        assert init.next_commands(service, plan, [])[2] == "service host invite"
        for name in ("one", "two"):
            host_rows.see(service.store, name, slots=4, started_at=1.0)
        assert "service host invite" not in init.next_commands(service, plan, [])


@pytest.mark.ruling("Q1.init")
def test_on_one_host_its_remote_is_not_looked_at(service: Service, shop: Path) -> None:
    git(shop, "remote", "add", "origin", "/nowhere")
    repo, plan = init.carry_out(service, survey(service, shop))
    assert (repo.remote, plan.checkout.alone, in_words(service, plan)[0]) == (
        "",
        None,
        f"acme/shop: registered ({shop})",
    )


def other(path: Path) -> Path:
    """Create another repository with a commit."""
    git(path, "init", "-q", str(path))
    commit(path)
    return path
