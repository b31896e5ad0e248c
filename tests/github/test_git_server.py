"""The server behaves like GitHub towards git."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github.git_server import GitServer, basic
from tests.github.hub import Hub

TOKEN = "ghs_0123456789"


class Clone:
    """A clone of somebody with a token, or without."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = TOKEN
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, fails: bool = False) -> str:
        about = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        bare = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        header = ["-c", f"http.extraHeader=Authorization: {basic(self.token)}"] if self.token else []
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **about, **bare}
        command = ["git", "-C", str(self.folder), *header, *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout.strip()

    def commit(self, size: int = 0) -> str:
        (self.folder / "file").write_bytes(os.urandom(size + 16))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "A change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


@pytest.fixture
def server(tmp_path: Path, clone: Clone) -> Iterator[GitServer]:
    """Run the server with a copy of the clone's first commit as acme/tool, which the clone calls origin."""
    clone.commit()
    with GitServer(tmp_path / "served", [TOKEN]) as made:
        clone.git("remote", "add", "origin", made.create("acme/tool", clone.folder))
        yield made


def test_who_has_a_token_pushes_and_fetches(server: GitServer, clone: Clone) -> None:
    clone.git("checkout", "-q", "-b", "topic")
    sha = clone.commit(size=2_000_000)  # so large that git sends it in chunks
    clone.git("push", "-q", "origin", "topic")
    assert server.refs("acme/tool")["refs/heads/topic"] == sha
    (push,) = server.pushes
    assert (push.repo, push.branch, push.new, push.forced) == ("acme/tool", "topic", sha, False)
    server.pull_head("acme/tool", 7, sha)
    clone.git("fetch", "-q", "origin", "refs/pull/7/head:refs/pull/7")
    assert clone.git("rev-parse", "refs/pull/7") == sha
    assert set(server.users) == {"x-access-token"}


def test_who_has_none_gets_nothing(server: GitServer, clone: Clone) -> None:
    for token in ("", "wrong"):
        clone.token = token
        clone.git("fetch", "origin", fails=True)
        clone.git("push", "origin", "main:other", fails=True)
    assert server.pushes == []
    assert set(server.users) == {""}


def test_a_protected_branch_and_the_head_of_a_pull_request_take_no_push(server: GitServer, clone: Clone) -> None:
    server.protect("acme/tool", "main")
    clone.commit()
    assert "GH006: Protected branch update failed for refs/heads/main" in clone.git(
        "push", "origin", "main", fails=True
    )
    clone.git("push", "origin", "main:refs/pull/7/head", fails=True)
    assert server.pushes == []


def test_a_push_moves_the_hub_s_branch_and_what_is_forced_is_seen(hub: Hub, server: GitServer, clone: Clone) -> None:
    number = hub.pull("topic")
    server.on_push = lambda push: hub.push(push.branch, push.new)
    first = clone.commit()
    clone.git("push", "-q", "origin", "HEAD:topic")
    assert hub.pull_of(number)["head"]["sha"] == first
    clone.git("commit", "-q", "--amend", "-m", "Another")
    clone.git("push", "-q", "--force", "origin", "HEAD:topic")
    assert [push.forced for push in server.pushes] == [False, True]
