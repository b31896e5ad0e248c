"""Heads of pull requests, fetched by real git from a server that may misbehave."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.git import pull_requests, remotes
from activities.git.pull_requests import LOCK_FILE, Source, heads, ref_of, target
from tests.activities.git.conftest import make_repository, run_git
from tests.activities.git.hub import clone, propose, served
from workflows.model.errors import NotFoundError, RefusedError, UnreachableError

pytestmark = pytest.mark.ruling("L1")


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "hub" / "shop")


@pytest.fixture
def checkout(hub: Path, tmp_path: Path) -> Path:
    return clone(hub, tmp_path / "checkout")


def source(checkout: Path, **fields: str) -> Source:
    return Source(checkout, "acme/shop", **fields)


def state(repo: Path) -> str:
    """Return the state of a checkout that a person sees."""
    return "\n".join(
        run_git(repo, *words)
        for words in (("status", "--short", "--branch"), ("for-each-ref", "refs/heads", "refs/remotes", "refs/tags"))
    )


def test_the_head_is_there_and_nothing_else_has_changed(hub: Path, checkout: Path) -> None:
    head = propose(hub, 7, "a change")
    run_git(hub, "tag", "-m", "x", "v1", head)
    run_git(checkout, "config", "--add", "remote.origin.fetch", "+refs/pull/*/head:refs/remotes/origin/pr/*")
    before = state(checkout)
    assert heads(source(checkout), (7,)) == {7: head}
    assert run_git(checkout, "rev-parse", "refs/service/pull/7") == head
    assert state(checkout) == before
    assert not (checkout / ".git" / "FETCH_HEAD").exists()
    assert not (checkout / ".git" / LOCK_FILE).exists()


@pytest.mark.ruling("P3")
def test_the_branch_it_goes_into_is_named_as_git_takes_it_here(hub: Path, checkout: Path) -> None:
    assert target(source(checkout), "") == "origin/HEAD"
    assert target(source(checkout), "main") == "origin/main"
    assert target(source(checkout), "release") == "", "the checkout has never seen it"
    run_git(checkout, "branch", "release")
    assert target(source(checkout), "release") == "release"
    run_git(checkout, "remote", "rename", "origin", "up")
    run_git(checkout, "remote", "set-url", "up", "git@github.com:acme/shop.git")
    assert target(source(checkout), "main") == "up/main"
    run_git(checkout, "remote", "remove", "up")
    assert target(source(checkout), "") == "main"


def test_several_heads_are_fetched_at_once_and_no_head_needs_no_remote(hub: Path, checkout: Path) -> None:
    wanted = {number: propose(hub, number, f"change {number}") for number in (7, 8)}
    assert heads(source(checkout), (8, 7)) == wanted
    run_git(checkout, "remote", "remove", "origin")
    assert heads(source(checkout), ()) == {}


def test_a_head_that_was_replaced_is_followed_and_the_old_one_stays_reachable(hub: Path, checkout: Path) -> None:
    old = propose(hub, 7, "a change")
    heads(source(checkout), (7,))
    new = propose(hub, 7, "another one")
    assert heads(source(checkout), (7,)) == {7: new}
    run_git(checkout, "gc", "-q", "--prune=now")
    assert run_git(checkout, "cat-file", "-t", old) == "commit"


def test_concurrent_callers_all_get_the_head(hub: Path, checkout: Path) -> None:
    head = propose(hub, 7, "a change")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: heads(source(checkout), (7,)), range(8))) == [{7: head}] * 8


def test_what_a_killed_git_left_locked_is_no_obstacle(hub: Path, checkout: Path) -> None:
    head = propose(hub, 7, "a change")
    lock = checkout / ".git" / f"{ref_of(7)}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert heads(source(checkout), (7,)) == {7: head}


def test_the_remote_of_that_name_is_taken_before_origin(hub: Path, checkout: Path, tmp_path: Path) -> None:
    upstream = make_repository(tmp_path / "github" / "acme" / "shop", what="ours")
    propose(hub, 7, "of the fork")
    head = propose(upstream, 7, "of the repository")
    run_git(checkout, "remote", "add", "upstream", "git@github.com:acme/shop.git")
    run_git(checkout, "config", f"url.{tmp_path}/github/.insteadOf", "git@github.com:")
    run_git(upstream.parent, "clone", "-q", "--bare", str(upstream), "shop.git")
    run_git(upstream.parent / "shop.git", "fetch", "-q", str(upstream), "refs/pull/7/head:refs/pull/7/head")
    assert heads(source(checkout), (7,)) == {7: head}


class TestWhatGoesWrong:
    def test_there_is_no_such_pull_request(self, hub: Path, checkout: Path) -> None:
        propose(hub, 7, "a change")
        with pytest.raises(NotFoundError, match="there is no pull request #8 at the remote origin") as none:
            heads(source(checkout), (7, 8))
        assert none.value.hint == f"git -C {checkout} ls-remote origin 'refs/pull/*/head'"

    def test_the_remote_is_gone(self, hub: Path, checkout: Path) -> None:
        hub.rename(hub.with_name("elsewhere"))
        with pytest.raises(UnreachableError, match="pull request #7 cannot be fetched from the remote origin") as gone:
            heads(source(checkout), (7,))
        assert gone.value.hint == f"git -C {checkout} fetch origin refs/pull/7/head"

    def test_there_is_no_remote(self, checkout: Path) -> None:
        run_git(checkout, "remote", "remove", "origin")
        with pytest.raises(RefusedError, match="has no remote to fetch acme/shop from") as none:
            heads(source(checkout), (7,))
        assert none.value.hint == f"git -C {checkout} remote add origin https://github.com/acme/shop.git"

    def test_origin_is_another_repository_on_github(self, hub: Path, checkout: Path) -> None:
        propose(hub, 7, "of the fork")
        run_git(checkout, "remote", "set-url", "origin", "git@github.com:ann/shop.git")
        run_git(checkout, "config", f"url.{hub}.insteadOf", "git@github.com:ann/shop.git")
        with pytest.raises(RefusedError, match="has no remote to fetch acme/shop from") as none:
            heads(source(checkout), (7,))
        assert none.value.hint == f"git -C {checkout} remote add github https://github.com/acme/shop.git"

    def test_the_checkout_is_gone(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="the path is missing"):
            heads(source(tmp_path / "nowhere"), (7,))

    @pytest.mark.parametrize("what", ["HEAD^{tree}", "HEAD:readme.md"])
    def test_a_head_that_is_no_commit(self, hub: Path, checkout: Path, what: str) -> None:
        run_git(hub, "update-ref", "refs/pull/7/head", run_git(hub, "rev-parse", what))
        with pytest.raises(RefusedError, match=r"the head of pull request #7 at the remote origin .* is not a commit"):
            heads(source(checkout), (7,))

    def test_a_remote_that_never_answers_is_given_up(self, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pull_requests, "FETCH_SECONDS", 1.0)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            run_git(checkout, "remote", "set-url", "origin", f"http://127.0.0.1:{silent.getsockname()[1]}/shop")
            with pytest.raises(UnreachableError, match="timed out after 1 s"):
                heads(source(checkout), (7,))


class TestAHostileConfiguration:
    """A fetch runs no program that the checkout's configuration names."""

    @pytest.mark.parametrize(
        ("url", "key"),
        [
            ("", "remote.origin.uploadpack"),
            ("", "core.fsmonitor"),
            ("ssh://localhost:1/shop", "core.sshCommand"),
            ("git://localhost:1/shop", "core.gitProxy"),
            ("ext::touch {made}", ""),
            ("", "remote.origin.vcs"),
        ],
    )
    def test_it_runs_nothing(self, hub: Path, checkout: Path, tmp_path: Path, url: str, key: str) -> None:
        made = tmp_path / "made"
        propose(hub, 7, "a change")
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\ntouch {made}\nexit 1\n")
        program.chmod(0o700)
        run_git(checkout, "config", "protocol.allow", "always")
        if url:
            run_git(checkout, "config", "remote.origin.url", url.format(made=made))
        if key:
            run_git(checkout, "config", key, "ext" if key.endswith("vcs") else str(program))
        with contextlib.suppress(RefusedError, UnreachableError):
            heads(source(checkout), (7,))
        assert not made.exists()

    def test_nobody_is_asked_for_a_password(self, hub: Path, checkout: Path, tmp_path: Path) -> None:
        made, program = tmp_path / "made", tmp_path / "program"
        program.write_text(f"#!/bin/sh\ntouch {made}\necho ann\n")
        program.chmod(0o700)
        propose(hub, 7, "a change")
        for key in ("core.askPass", "credential.helper"):
            run_git(checkout, "config", key, str(program))
        with served(hub.parent, token="t-1") as server:
            run_git(checkout, "remote", "set-url", "origin", f"{server.url}/shop/.git")
            with pytest.raises(RefusedError, match="does not let the service read pull request #7"):
                heads(source(checkout, web=server.url), (7,))
        assert not made.exists()


class TestAToken:
    SECRET = "ghp_aVerySecretToken0123456789"

    def test_it_opens_a_private_repository(self, hub: Path, checkout: Path) -> None:
        head = propose(hub, 7, "a change")
        with served(hub.parent, token=self.SECRET) as server:
            run_git(checkout, "remote", "set-url", "origin", f"{server.url}/shop/.git")
            assert heads(source(checkout, web=server.url), (7,), self.SECRET) == {7: head}
        assert self.SECRET not in "".join(path.read_text("latin-1") for path in (checkout / ".git").rglob("*config*"))

    def test_a_wrong_one_is_said_and_not_shown(self, hub: Path, checkout: Path) -> None:
        propose(hub, 7, "a change")
        with served(hub.parent, token="another") as server:
            run_git(checkout, "remote", "set-url", "origin", f"http://ann:pass-1@{server.url[7:]}/shop/.git")
            with pytest.raises(RefusedError, match="does not let the service read pull request #7") as refused:
                heads(source(checkout, web=server.url), (7,), self.SECRET)
        assert refused.value.hint == (
            "export the variable that [github].token_env names, with a token that may read acme/shop; "
            f"or by ssh: git -C {checkout} remote set-url origin git@127.0.0.1:acme/shop.git"
        )
        assert self.SECRET not in str(refused.value)
        assert "pass-1" not in str(refused.value)

    def test_only_the_address_it_is_for_is_shown_it(self, hub: Path, checkout: Path) -> None:
        head = propose(hub, 7, "a change")
        with served(hub.parent) as server:
            run_git(checkout, "remote", "set-url", "origin", f"{server.url}/shop/.git")
            assert heads(source(checkout), (7,), self.SECRET) == {7: head}
            assert set(server.shown) == {""}

    def test_a_redirection_is_not_followed(self, hub: Path, checkout: Path) -> None:
        propose(hub, 7, "a change")
        with served(hub.parent) as other, served(hub.parent, moved_to=other.url) as server:
            run_git(checkout, "remote", "set-url", "origin", f"{server.url}/shop/.git")
            with pytest.raises(UnreachableError):
                heads(source(checkout, web=server.url), (7,), self.SECRET)
            assert other.shown == []

    def test_no_proxy_that_the_checkout_names_listens_in(self, hub: Path, checkout: Path) -> None:
        head = propose(hub, 7, "a change")
        with served(hub.parent, token=self.SECRET) as server, served(hub.parent) as proxy:
            run_git(checkout, "remote", "set-url", "origin", f"{server.url}/shop/.git")
            for key in ("http.proxy", f"http.{server.url}/.proxy", "remote.origin.proxy"):
                run_git(checkout, "config", key, proxy.url)
            run_git(checkout, "config", f"url.{proxy.url}/.insteadOf", f"{server.url}/")
            assert heads(source(checkout, web=server.url), (7,), self.SECRET) == {7: head}
            assert proxy.shown == []

    def test_a_token_works_with_a_remote_on_disk_and_a_missing_number(self, hub: Path, checkout: Path) -> None:
        head = propose(hub, 7, "a change")
        run_git(checkout, "remote", "set-url", "origin", "../hub/shop")
        assert heads(source(checkout), (7,), self.SECRET) == {7: head}
        new = propose(hub, 7, "another one")
        assert heads(source(checkout), (7,), self.SECRET) == {7: new}
        with pytest.raises(NotFoundError, match="there is no pull request #8 at the remote origin"):
            heads(source(checkout), (8,), self.SECRET)

    def test_it_is_in_the_environment_of_git_alone(self) -> None:
        made = remotes.environment(self.SECRET, "https://github.com/", {"PATH": "/bin", "HTTPS_PROXY": "p", "X": "y"})
        assert "http.https://github.com/.extraHeader" in made.values()
        assert made["HTTPS_PROXY"] == "p"
        assert "X" not in made
        assert not any("Authorization" in each for each in remotes.environment(None, "https://github.com", {}).values())


def test_the_remotes_of_a_repository(checkout: Path, hub: Path, repo: Path) -> None:
    run_git(checkout, "remote", "add", "up.stream", "git@github.com:acme/shop.git")
    assert remotes.remotes(checkout) == {"origin": str(hub), "up.stream": "git@github.com:acme/shop.git"}
    assert remotes.remotes(repo) == {}


def test_an_address_is_shown_without_what_is_secret_in_it() -> None:
    assert remotes.without_credentials("https://ann:t-1@github.com/acme/shop") == "https://github.com/acme/shop"
    assert remotes.without_credentials("git@github.com:acme/shop") == "git@github.com:acme/shop"
