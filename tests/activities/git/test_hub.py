"""The hub: work of trees travels between hosts through a repository, and the mirror of a remote (ruling Q3)."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from activities.git import git_branches, hub, mirrors
from activities.git.command import GitError
from activities.git.hub import HEADS, SERVICE, Hub, HubAwayError, HubRefusesError
from activities.git.mirrors import Mirror, mirror_of
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.activities.git.hub import served
from workflows.model.errors import NotFoundError, UsageError

JOB, TASK = "service/job-0123456789ab", "service/task-0123456789ab"
TREE = "0123456789ab"
Make = Callable[[str], Mirror]
"""Make the mirror of a host."""


@dataclass(frozen=True)
class Forge:
    """A bare repository that people push to, and their checkout."""

    url: Path
    checkout: Path

    def pushes(self, name: str, content: str, branch: str = "main") -> str:
        commit = commit_file(self.checkout, name, content)
        run_git(self.checkout, "push", "-q", str(self.url), f"HEAD:refs/heads/{branch}")
        return commit

    def refs(self) -> dict[str, str]:
        rows = (
            row.split() for row in run_git(self.url, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        )
        return dict(rows)

    def hook(self, script: str) -> None:
        hook = self.url / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{script}\n")
        hook.chmod(0o755)


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    checkout = make_repository(tmp_path / "people", **{"src/a.py": "a\n"})
    run_git(tmp_path, "clone", "-q", "--bare", str(checkout), str(tmp_path / "forge.git"))
    return Forge(tmp_path / "forge.git", checkout)


@pytest.fixture
def mirror(forge: Forge, tmp_path: Path) -> Make:
    """Make the mirror of one host."""

    def make(host: str) -> Mirror:
        mirror = mirror_of(tmp_path / host, "acme/shop", str(forge.url), "main")
        mirrors.make_if_missing(mirror)
        return mirror

    return make


def works(mirror: Mirror, branch: str, text: str, base: str | None = None) -> str:
    """Commit on a branch of the service, as a job on this mirror's host."""
    base = base or git_branches.tip(mirror.path, "main") or ""
    tree = run_git(mirror.path, "rev-parse", f"{base}^{{tree}}")
    commit = run_git(mirror.path, "commit-tree", "-p", base, "-m", text, tree)
    run_git(mirror.path, "update-ref", f"refs/heads/{branch}", commit)
    return commit


@pytest.mark.ruling("Q3")
def test_a_mirror_has_the_branches_and_tags_of_people_as_the_remote_has_them(forge: Forge, mirror: Make) -> None:
    run_git(forge.url, "branch", "old", "main")
    run_git(forge.url, "tag", "v1", "main")
    here = mirror("a")
    mine = works(here, JOB, "work")
    run_git(forge.url, "branch", "-D", "old")
    head = forge.pushes("new.txt", "new\n")
    mirrors.fetch(here)
    assert git_branches.commit(here.path, "HEAD") == head
    assert git_branches.tip(here.path, "old") is None
    assert git_branches.commit(here.path, "v1") == git_branches.commit(here.path, f"{head}~1")
    assert git_branches.tip(here.path, JOB) == mine


ONLY_BRANCHES = 'case "$1" in refs/heads/*) exit 0;; esac; echo "only branches"; exit 1'


@pytest.mark.ruling("Q3")
@pytest.mark.parametrize("refs", [SERVICE, HEADS])
def test_work_of_one_host_is_on_the_other_through_the_hub(refs: str, forge: Forge, mirror: Make) -> None:
    one, other, through = mirror("a"), mirror("b"), Hub(str(forge.url), refs, branches_allowed=True)
    head = works(one, JOB, "work")
    assert hub.push(one.path, through, head, JOB)
    assert forge.refs()[f"{refs}job-{TREE}"] == head
    hub.fetch_trees(other.path, through, [TREE])
    assert git_branches.tip(other.path, JOB) == head
    further = works(other, JOB, "more", head)
    assert hub.push(other.path, through, further, JOB)
    hub.fetch_trees(one.path, through, [TREE])
    assert git_branches.tip(one.path, JOB) == further
    hub.remove(other.path, through, [JOB, "service/job-nowhere"])
    assert f"{refs}job-{TREE}" not in forge.refs()


@pytest.mark.ruling("Q3")
def test_a_branch_that_was_dropped_goes_from_every_host_and_one_that_the_hub_lost_stays(
    forge: Forge, mirror: Make
) -> None:
    one, through = mirror("a"), Hub(str(forge.url))
    head = works(one, JOB, "work")
    hub.keep(one.path, through, head, JOB, "elsewhere")
    run_git(forge.url, "update-ref", "-d", f"{SERVICE}job-{TREE}")
    hub.fetch_trees(one.path, through, [TREE])
    assert git_branches.tip(one.path, JOB) == head
    hub.keep(one.path, through, head, JOB, "elsewhere")
    hub.remove(one.path, through, [JOB])
    hub.fetch_trees(one.path, through, [TREE], [JOB])
    assert git_branches.tip(one.path, JOB) is None


@pytest.mark.ruling("Q3")
def test_work_that_is_here_only_is_never_moved_back_or_removed(forge: Forge, mirror: Make) -> None:
    one, through = mirror("a"), Hub(str(forge.url))
    head = works(one, JOB, "work")
    hub.push(one.path, through, head, JOB)
    hub.fetch_trees(one.path, through, [TREE])
    further = works(one, JOB, "not pushed yet", head)
    hub.fetch_trees(one.path, through, [TREE])
    assert git_branches.tip(one.path, JOB) == further
    hub.remove(one.path, through, [JOB])
    hub.fetch_trees(one.path, through, [TREE], [JOB])
    assert git_branches.tip(one.path, JOB) == further


@pytest.mark.ruling("Q3")
def test_two_hosts_that_push_at_once_never_lose_work(forge: Forge, mirror: Make) -> None:
    one, other, through = mirror("a"), mirror("b"), Hub(str(forge.url))
    mine, theirs = works(one, TASK, "mine"), works(other, TASK, "theirs")
    assert hub.push(one.path, through, mine, TASK, expected="")
    assert not hub.push(other.path, through, theirs, TASK, expected="")
    assert not hub.push(other.path, through, theirs, TASK)
    assert forge.refs()[f"{SERVICE}task-{TREE}"] == mine


@pytest.mark.ruling("Q3")
def test_a_commit_that_no_branch_has_is_fetched_by_its_id(forge: Forge, mirror: Make) -> None:
    here = mirror("a")
    lost = forge.pushes("lost.txt", "lost\n", branch="topic")
    run_git(forge.url, "branch", "-D", "topic")
    hub.fetch_commits(here.path, [str(forge.url)], [lost, "1" * 40])
    assert git_branches.commit(here.path, lost) == lost
    assert git_branches.commit(here.path, "1" * 40) is None


@pytest.mark.ruling("Q3")
def test_the_namespace_is_found_out_by_a_push_and_nothing_stays(forge: Forge) -> None:
    before = forge.refs()
    assert hub.namespace(str(forge.url), branches_allowed=False) == SERVICE
    forge.hook(ONLY_BRANCHES)
    assert hub.namespace(str(forge.url), branches_allowed=True) == HEADS
    forge.hook('echo "read-only for you"; exit 1')
    with pytest.raises(HubRefusesError, match="refuses the service's work: "):
        hub.namespace(str(forge.url), branches_allowed=True)
    assert forge.refs() == before


@pytest.mark.ruling("Q3")
def test_branches_are_not_used_unless_the_operator_allows_it(forge: Forge, mirror: Make) -> None:
    before = forge.refs()
    forge.hook(ONLY_BRANCHES)
    with pytest.raises(HubRefusesError, match=r"(?s)only branches.*\[git\]\.hub_branches = true"):
        hub.namespace(str(forge.url), branches_allowed=False)
    here, found_before = mirror("a"), Hub(str(forge.url), HEADS)
    with pytest.raises(HubRefusesError, match=r"\[git\]\.hub"):
        hub.push(here.path, found_before, works(here, JOB, "work"), JOB)
    assert forge.refs() == before


@pytest.mark.ruling("Q3")
@pytest.mark.ruling("N7")
def test_what_a_forge_says_is_told_without_secrets(tmp_path: Path) -> None:
    secret, url = "ghp" + "_0123456789abcdefghijABCDEFGHIJ012345", "https://ann:pass-word-9@forge.invalid/x.git"
    error = GitError(tmp_path, ("fetch",), 128, f"fatal: {url}: no route\nremote: {secret} has expired")
    fault = hub.fault(tmp_path, url, error)
    assert "has expired" in fault.message
    assert secret not in fault.message
    assert "pass-word-9" not in f"{fault.message}{fault.hint}"


def test_a_remote_that_asks_for_a_password_says_so_with_a_command(tmp_path: Path, forge: Forge) -> None:
    (tmp_path / "served").mkdir()
    forge.url.rename(tmp_path / "served" / "shop.git")
    with served(tmp_path / "served", token="secret") as server, pytest.raises(HubRefusesError) as refused:
        hub.default_branch(f"{server.url}/shop.git")
    assert "asks for a password" in refused.value.message
    assert "git config --global credential.helper" in refused.value.hint


@pytest.mark.ruling("Q3")
def test_a_hub_that_is_away_is_told_apart_from_a_missing_commit(tmp_path: Path, forge: Forge, mirror: Make) -> None:
    here = mirror("a")
    for gone in ("http://127.0.0.1:1/shop.git", str(tmp_path / "nowhere.git")):
        with pytest.raises(HubAwayError, match="cannot be reached"):
            hub.fetch_trees(here.path, Hub(gone), [TREE])
    with pytest.raises(UsageError, match="has no commit on its default branch"):
        hub.default_branch(str(_empty(tmp_path)))
    other = tmp_path / "sha256"
    run_git(tmp_path, "init", "-q", "--object-format=sha256", str(other))
    run_git(other, "commit", "-q", "--allow-empty", "-m", "first")
    with pytest.raises(UsageError, match="keeps its objects by SHA-256"):
        hub.default_branch(str(other))


def _empty(tmp_path: Path) -> Path:
    run_git(tmp_path, "init", "-q", "--bare", "-b", "main", "empty.git")
    return tmp_path / "empty.git"


@pytest.mark.ruling("Q3")
def test_a_remote_whose_default_branch_went_away_says_what_to_type(forge: Forge, mirror: Make) -> None:
    here = mirror("a")
    run_git(forge.url, "branch", "-m", "main", "trunk")
    with pytest.raises(NotFoundError, match="has no branch main, which was its default branch"):
        mirrors.fetch(here)


@pytest.mark.ruling("Q3")
@pytest.mark.parametrize("broken", ["HEAD", "config", "history", "work"])
def test_a_broken_mirror_is_made_again_and_keeps_its_work(broken: str, forge: Forge, mirror: Make) -> None:
    here = mirror("a")
    mine = works(here, JOB, "work")
    if broken in ("history", "work"):
        for file in (here.path / "objects").glob("??/*"):
            if (file.parent.name + file.name == mine) is (broken == "work"):
                file.unlink()
    if broken == "history":
        (here.path / "packed-refs").write_text("not even references\n")
    elif broken == "work":
        (here.path / "HEAD").unlink()
    elif broken == "config":
        (here.path / "config").write_text("[core\n")
    else:
        (here.path / "HEAD").unlink()
    mirrors.fetch(here)
    assert git_branches.commit(here.path, "HEAD") == run_git(forge.url, "rev-parse", "main")
    if broken == "work":  # what can't be copied stays beside the new mirror
        assert list(here.path.parent.glob("*.broken-*"))
    else:
        assert git_branches.tip(here.path, JOB) == mine
        assert not list(here.path.parent.glob("*.broken-*"))


@pytest.mark.ruling("Q3")
def test_threads_that_need_a_mirror_at_once_make_it_once(forge: Forge, tmp_path: Path) -> None:
    mirror = mirror_of(tmp_path / "a", "acme/shop", str(forge.url), "main")
    threads = [Thread(target=mirrors.make_if_missing, args=(mirror,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert git_branches.commit(mirror.path, "HEAD") == run_git(forge.url, "rev-parse", "main")
    assert [each.name for each in mirror.path.parent.iterdir()] == [mirror.path.name]


@pytest.mark.ruling("Q3")
def test_a_mirror_whose_making_was_killed_is_made_from_anew(forge: Forge, tmp_path: Path) -> None:
    mirror = mirror_of(tmp_path / "a", "acme/shop", str(forge.url), "main")
    half = mirror.path.with_suffix(".new")
    shutil.copytree(forge.url / "objects", half / "objects")
    assert git_branches.commit(mirrors.make_if_missing(mirror), "HEAD") == run_git(forge.url, "rev-parse", "main")
