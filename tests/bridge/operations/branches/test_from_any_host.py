"""Work on a tree from any host: for a repository with a remote all of it, else the host to do it on is named."""

import asyncio
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from activities.git import hub
from activities.host import checkouts
from activities.settings.home import Home
from activities.store import schema
from activities.store.registry import host_rows
from bridge.operations.branches import auto_merge, branches, diffs, drops, hub_work, merge_gate, merges
from bridge.operations.branches.branches import BranchState
from bridge.operations.branches.publish import work_of
from bridge.operations.jobs import jobs
from bridge.operations.orders import follow_ups
from bridge.operations.service import Service
from cli.main import main
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import grown, reviewed, seeds
from tests.bridge.grown import CODE, DOCS, FIX
from tests.bridge.http.conftest import caller
from tests.bridge.operations.orders import team
from tests.bridge.reviewed import TASK_BRANCH, A, B
from tests.bridge.seeds import ROOT
from tests.bridge.two_hosts import HERE, THERE, at_hub, joined, seen
from tests.waiting import PATIENCE
from workflows.github.merge_gate import GateState
from workflows.model.errors import RefusedError, ServiceError, UnreachableError
from workflows.model.rows import JobRecord
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("Q3.work")
ACTOR = "ann, in the terminal"


@dataclass(frozen=True)
class Two:
    """Two hosts, and the hub with a tree's work."""

    here: Service
    there: Service
    bare: Path
    heads: dict[str, str]

    def merge(self, service: Service, *job_ids: str, into_mine: bool = False) -> merges.MergedLegs:
        return merges.merge(service, job_ids, actor=ACTOR, into_mine=into_mine)

    def refs(self, pattern: str = "refs/service/") -> dict[str, str]:
        rows = run_git(self.bare, "for-each-ref", "--format=%(refname) %(objectname)", pattern).splitlines()
        return dict(row.split() for row in rows)

    @property
    def task(self) -> str | None:
        return self.refs().get(f"refs/service/{seeds.TASK}")

    def files(self, revision: str) -> list[str]:
        return run_git(self.bare, "ls-tree", "--name-only", revision).splitlines()

    def states(self, service: Service) -> list[BranchState]:
        hub_work._fetches.clear()
        return [leg.state for leg in branches.of_tree(service, ROOT).legs]

    def hook(self, script: str) -> None:
        hook = self.bare / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{script}\n")
        hook.chmod(0o755)


Make = Callable[[], Two]


@pytest.fixture
def services(home: Home, tmp_path: Path) -> Iterator[tuple[Service, Service]]:
    hub_work._fetches.clear()
    here, there = joined(home, tmp_path)
    yield here, there
    here.store.dispose()
    there.store.dispose()


@pytest.fixture
def two(services: tuple[Service, Service], tmp_path: Path) -> Two:
    """Return a done tree whose legs `a` and `b` merge with each other."""
    made = reviewed.reviewed(services[0], tmp_path)
    return Two(*services, at_hub(services[0], made.repo, tmp_path), made.heads)


@pytest.fixture
def grown_two(services: tuple[Service, Service], tmp_path: Path) -> Two:
    """Return a done tree with a line, of which leg `docs` is left out."""
    made = grown.grown(services[0], tmp_path)
    return Two(*services, at_hub(services[0], made.repo, tmp_path), made.heads)


def test_every_host_sees_the_same_branches_and_diffs(grown_two: Two) -> None:
    two = grown_two
    one, other = (branches.of_tree(each, ROOT) for each in (two.here, two.there))
    assert one.line == other.line != ""
    assert one.legs == other.legs
    assert one.path.startswith(str(two.here.home.mirrors))
    assert other.path.startswith(str(two.there.home.mirrors))
    both = (two.here, two.there)
    for shown in ([diffs.of_tree(each, ROOT) for each in both], [diffs.of_job(each, FIX) for each in both]):
        texts = [b"".join(each.pieces()) for each in shown]
        assert texts[0] == texts[1] != b""
    assert merge_gate.of_tree(two.here, ROOT) == merge_gate.of_tree(two.there, ROOT)


def test_a_merge_on_one_host_is_one_on_all(two: Two) -> None:
    done = two.merge(two.there, A)
    assert (done.merged, two.task) == ((A,), done.head)
    assert two.states(two.here) == [BranchState.MERGED, BranchState.UNMERGED]
    assert two.merge(two.here, ROOT).merged == (B,)
    assert sorted(two.files(two.task or "")) == ["a.txt", "b.txt", *two.files("main")]
    assert two.states(two.there) == [BranchState.MERGED] * 2


def test_a_merge_while_another_host_merges_is_made_again_on_top(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other host's merge ends between this one's fetch and its push."""
    pushes, push = list[str](), hub.push

    def late(*arguments: object, **named: object) -> bool:
        pushes.append("")
        if len(pushes) == 1:
            two.merge(two.there, A)
        return push(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(hub, "push", late)
    assert two.merge(two.here, B).merged == (B,)
    assert len(pushes) == 3, "one of the other host, one that it was ahead of, one on top of that"
    assert {"a.txt", "b.txt"} <= set(two.files(two.task or ""))
    assert two.states(two.here) == two.states(two.there) == [BranchState.MERGED] * 2


def test_two_merges_at_once_lose_nothing(two: Two) -> None:
    merging = [Thread(target=two.merge, args=work) for work in ((two.here, A), (two.there, B))]
    for thread in merging:
        thread.start()
    for thread in merging:
        thread.join()
    assert {"a.txt", "b.txt"} <= set(two.files(two.task or ""))
    assert two.states(two.here) == two.states(two.there) == [BranchState.MERGED] * 2


def test_what_a_person_committed_on_one_host_is_merged_with_what_another_merged(two: Two) -> None:
    two.merge(two.here, A)
    mirror = Path(branches.of_tree(two.here, ROOT).path)
    run_git(mirror, "worktree", "add", "-q", str(mirror.parent / "mine"), TASK_BRANCH)
    mine = commit_file(mirror.parent / "mine", "mine.txt", "by hand\n")
    run_git(mirror, "worktree", "remove", str(mirror.parent / "mine"))
    two.merge(two.there, B)
    two.merge(two.here, ROOT)
    assert {"a.txt", "b.txt", "mine.txt"} <= set(two.files(two.task or ""))
    assert mine in run_git(two.bare, "rev-list", two.task or "").split()


def test_a_drop_on_one_host_is_one_on_all(two: Two) -> None:
    two.merge(two.here, A)
    assert two.states(two.there) == [BranchState.MERGED, BranchState.UNMERGED]
    gone = drops.drop(two.there, ROOT, actor=ACTOR, force=True)
    assert len(gone.dropped) == 3
    assert [name for name in two.refs() if "/line/" not in name] == []
    assert two.states(two.here) == [BranchState.MERGED, BranchState.DROPPED]
    assert branches.of_tree(two.here, ROOT).head is None


def test_the_printed_command_brings_a_branch_back_on_every_host(two: Two) -> None:
    [gone] = drops.drop(two.there, B, actor=ACTOR, force=True).dropped
    assert two.states(two.here) == [BranchState.UNMERGED, BranchState.DROPPED]
    subprocess.run(gone.back, shell=True, check=True)
    assert two.states(two.here) == two.states(two.there) == [BranchState.UNMERGED] * 2


def test_the_command_of_a_sweep_brings_it_back_on_every_host(
    two: Two, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE_HOME", str(two.there.home.root))
    assert main(["repo", "sweep", "acme/shop", "--unmerged", "--yes"]) == 0
    lines = [line.partition("bring it back: ")[2] for line in capsys.readouterr().out.splitlines()]
    assert two.states(two.here) == [BranchState.DROPPED] * 2
    for command in filter(None, lines):
        subprocess.run(command, shell=True, check=True)
    assert two.states(two.here) == [BranchState.UNMERGED] * 2


def test_branches_that_only_other_hosts_made_are_swept_from_any(two: Two) -> None:
    [work] = drops.find_unmerged(two.there, drops.Choice("acme/shop"))
    assert (work.root_job_id, len(work.branches), work.commits) == (ROOT, 2, 2)
    assert len(drops.drop_unmerged(two.there, [work], actor=ACTOR).dropped) == 2
    assert drops.find_unmerged(two.here, drops.Choice()) == []


class TestIntoTheDefaultBranch:
    """`--into-mine` on a host with a mirror: the default branch at the remote."""

    def test_it_is_fast_forwarded_merged_or_there_already(self, two: Two) -> None:
        assert two.merge(two.there, ROOT, into_mine=True).into_mine == "fast-forwarded"
        assert run_git(two.bare, "rev-parse", "main") == two.task
        assert two.merge(two.here, ROOT, into_mine=True).into_mine == "was there already"
        assert drops.drop(two.here, ROOT, actor=ACTOR, force=False).stays == "", "its work is in the default branch"

    def test_a_push_of_people_in_between_stays(self, two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run_git(tmp_path, "clone", "-q", str(two.bare), "people")
        push, late = hub.push, [True]

        def overtaken(repo: Path, to: hub.Hub, *arguments: object, **named: object) -> bool:
            if to.refs == hub.Hub("", "refs/heads/").refs and late:
                late.clear()
                commit_file(tmp_path / "people", "late.txt", "late\n")
                run_git(tmp_path / "people", "push", "-q", "origin", "main")
            return push(repo, to, *arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(hub, "push", overtaken)
        assert two.merge(two.here, ROOT, into_mine=True).into_mine == "merged"
        assert {"a.txt", "b.txt", "late.txt"} <= set(two.files("main"))

    def test_a_protected_branch_is_named_with_the_way_on(self, two: Two) -> None:
        before = run_git(two.bare, "rev-parse", "main")
        two.hook('[ "$1" != refs/heads/main ] || { echo "protected branch"; exit 1; }')
        with pytest.raises(RefusedError, match="has the work, and is not merged into main at") as refused:
            two.merge(two.here, ROOT, into_mine=True)
        assert refused.value.hint == f"service job publish {ROOT}"
        assert run_git(two.bare, "rev-parse", "main") == before
        assert two.states(two.there) == [BranchState.MERGED] * 2

    def test_a_conflict_changes_nothing_there(self, two: Two, tmp_path: Path) -> None:
        run_git(tmp_path, "clone", "-q", str(two.bare), "people")
        commit_file(tmp_path / "people", "a.txt", "another a\n")
        run_git(tmp_path / "people", "push", "-q", "origin", "main")
        before = run_git(two.bare, "rev-parse", "main")
        with pytest.raises(RefusedError, match=r"it conflicts in a\.txt") as refused:
            two.merge(two.here, ROOT, into_mine=True)
        assert run_git(two.bare, "rev-parse", "main") == before
        assert refused.value.hint.startswith(f"service job resolve {ROOT} --with-mine\n")


class TestHubAway:
    """A hub that can't be reached."""

    def test_an_order_changes_nothing_and_a_look_shows_what_is_here(self, two: Two) -> None:
        assert two.states(two.here) == [BranchState.UNMERGED] * 2
        two.bare.rename(two.bare.with_name("away.git"))
        for order in (
            lambda: two.merge(two.here, A),
            lambda: drops.drop(two.here, ROOT, actor=ACTOR, force=True),
            lambda: work_of(two.here, _job(two.here, ROOT)),
        ):
            with pytest.raises(ServiceError, match=r"hub\.git"):
                order()
        assert two.states(two.here) == [BranchState.UNMERGED] * 2
        tree = branches.of_tree(two.here, ROOT)
        assert "hub.git" in tree.stale
        assert tree.head is None
        assert tree.problem == ""
        assert merge_gate.of_tree(two.here, ROOT).state is GateState.UNKNOWN
        assert b"a.txt" in b"".join(diffs.of_job(two.here, A).pieces()), "its commits are here already"

    def test_a_host_that_has_nothing_of_it_says_so(self, two: Two) -> None:
        two.bare.rename(two.bare.with_name("away.git"))
        assert "hub.git" in branches.of_tree(two.there, ROOT).problem
        with pytest.raises(ServiceError, match=r"hub\.git"):
            diffs.of_job(two.there, A)

    def test_a_look_waits_a_few_seconds_at_most(self, two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hub_work, "WAIT_SECONDS", PATIENCE)
        two.states(two.here)
        monkeypatch.setattr(hub_work, "WAIT_SECONDS", 0.1)
        answers = threading.Event()
        monkeypatch.setattr(checkouts, "fetch", lambda *_: answers.wait(PATIENCE))
        hub_work._fetches.clear()
        assert branches.of_tree(two.here, ROOT).stale == "the hub of acme/shop has not answered yet"
        answers.set()

    def test_a_refused_push_leaves_this_host_as_it_was(self, two: Two) -> None:
        two.hook("exit 1")
        with pytest.raises(RefusedError, match="refuses the service's work"):
            two.merge(two.here, A)
        assert branches.of_tree(two.here, ROOT).head is None
        assert two.states(two.here) == [BranchState.UNMERGED] * 2


def test_the_work_to_publish_is_the_same_on_every_host(two: Two) -> None:
    two.merge(two.here, ROOT)
    assert work_of(two.there, _job(two.there, ROOT)) == work_of(two.here, _job(two.here, ROOT))


def test_a_conflict_is_resolved_from_any_host(grown_two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[str]()

    async def start(_: Service, tree: object, host: str) -> str:
        begun.append(host)
        return "job-000000000000"

    monkeypatch.setattr("bridge.operations.orders.trees.start", start)
    team.add(grown_two.there, "dev")
    made = asyncio.run(follow_ups.resolve(grown_two.there, ROOT))
    assert ([each.leg for each in made.conflicts], begun) == (["docs"], [THERE])


def test_a_conflict_with_the_default_branch_is_resolved_from_any_host(
    grown_two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = list[tuple[str, str]]()

    async def start(_: Service, tree: TreeInput, host: str) -> str:
        parts.extend((each.leg, each.head) for each in tree.line)
        return "job-000000000000"

    monkeypatch.setattr("bridge.operations.orders.trees.start", start)
    team.add(grown_two.there, "dev")
    grown_two.states(grown_two.there)
    run_git(tmp_path, "clone", "-q", str(grown_two.bare), "people")
    head = commit_file(tmp_path / "people", grown.FILE, "of people\n")
    run_git(tmp_path / "people", "push", "-q", "origin", "main")
    made = asyncio.run(follow_ups.resolve(grown_two.there, ROOT, with_mine=True))
    assert "mine" in [each.leg for each in made.conflicts]
    assert parts[-1] == ("mine", head)


def test_one_host_merges_an_ended_tree_by_itself(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host of the tree does it; another one only while that has no worker."""
    monkeypatch.setattr("activities.store.tree_rows.to_merge", lambda *_: [(ROOT, "acme/shop", 2.0)])
    monkeypatch.setattr(auto_merge, "_merge_if_ready", lambda *_: True)
    with two.here.store.begin() as connection:
        connection.execute(schema.trees.insert().values(root_job_id=ROOT, host=HERE, start={}, revision=0))
    seen(two.here, address="")
    watcher = auto_merge.EndWatcher()
    assert watcher.look(two.there) == []
    assert auto_merge.EndWatcher().look(two.here) == [ROOT]
    host_rows.stop(two.here.store, HERE, started_at=1.0)
    assert watcher.look(two.there) == [ROOT]


def test_a_tree_that_ends_while_the_hub_is_away_is_merged_later(
    grown_two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    two, watcher = grown_two, auto_merge.EndWatcher()
    monkeypatch.setattr("activities.store.tree_rows.to_merge", lambda *_: [(ROOT, "acme/shop", 2.0)])
    two.bare.rename(two.bare.with_name("away.git"))
    assert watcher.look(two.here) == []
    two.bare.with_name("away.git").rename(two.bare)
    assert watcher.look(two.here) == [], "not at once again"
    monkeypatch.setattr(watcher, "_again", {})
    assert watcher.look(two.here) == [ROOT]
    assert two.task is not None


class TestCheckoutElsewhere:
    """A repository without a remote, with its checkout on another host."""

    @pytest.fixture
    def two(self, services: tuple[Service, Service], tmp_path: Path) -> Two:
        made = grown.grown(services[1], tmp_path)
        return Two(*services, made.repo, made.heads)

    @pytest.mark.parametrize(
        ("order", "typed"),
        [
            (lambda here: merges.merge(here, [ROOT], actor=ACTOR), f"merge {ROOT}"),
            (lambda here: merges.merge(here, [CODE, FIX], actor=ACTOR, anyway=True), f"merge {CODE} {FIX} --anyway"),
            (lambda here: merges.merge(here, [ROOT], actor=ACTOR, into_mine=True), f"merge {ROOT} --into-mine"),
            (lambda here: drops.drop(here, ROOT, actor=ACTOR, force=False), f"drop {ROOT}"),
            (lambda here: drops.drop(here, DOCS, actor=ACTOR, force=True), f"drop {DOCS} --force"),
            (lambda here: diffs.of_job(here, FIX), f"diff {FIX}"),
            (lambda here: diffs.of_tree(here, ROOT), f"diff {ROOT} --tree"),
            (lambda here: asyncio.run(follow_ups.resolve(here, ROOT, with_mine=True)), f"resolve {ROOT} --with-mine"),
            (lambda here: asyncio.run(follow_ups.review(here, ROOT, actor=ACTOR)), f"review {ROOT}"),
            (lambda here: work_of(here, _job(here, ROOT)), f"publish {ROOT}"),
        ],
    )
    def test_the_host_and_the_command_are_named(self, two: Two, order: Callable[[Service], object], typed: str) -> None:
        with pytest.raises(ServiceError) as refused:
            order(two.here)
        assert f"the repository acme/shop is on the host {THERE}, not here" in refused.value.message
        assert refused.value.hint == f"ssh {THERE} service job {typed}"
        assert not isinstance(refused.value, UnreachableError)

    async def test_over_http_it_is_refused_likewise(self, two: Two) -> None:
        async with caller(two.here) as client:
            answer = await client.post(f"/v1/jobs/{ROOT}/merge")
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")
        assert f"ssh {THERE} service job merge {ROOT}" in answer.json()["error"]

    def test_looks_say_it_beside_what_the_store_knows(self, two: Two) -> None:
        tree = branches.of_tree(two.here, ROOT)
        assert (len(tree.legs), tree.way_on) == (3, f"ssh {THERE} service job branches {ROOT}")
        assert merge_gate.of_tree(two.here, ROOT).state is GateState.UNKNOWN


def _job(service: Service, job_id: str) -> JobRecord:
    return jobs.get(service, job_id)
