"""Pushes to the repository on GitHub: fast-forward only, the service's branches only, and no secret is shown."""

import socket
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from activities.git import pushing
from activities.git.command import GitError
from activities.git.pushing import Destination
from tests.activities.git.conftest import commit_file, run_git
from tests.github.git_server import GitServer
from workflows.model.errors import RefusedError, ServiceError

pytestmark = pytest.mark.ruling("L9")
GITHUB, WEB = "acme/shop", "https://github.com"
BRANCH, SECRET = "service/task-1", "ghp_0123456789abcdefghijABCDEFGHIJ456789"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "shop.git"
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    return path


@pytest.fixture
def work(repo: Path, bare: Path) -> str:
    """Commit on a branch, in a checkout whose remote is a path."""
    run_git(repo, "remote", "add", "origin", str(bare))
    run_git(repo, "checkout", "-q", "-b", "service/job-1")
    return commit_file(repo, "new.txt", "new\n")


def there(bare: Path, branch: str = BRANCH) -> str:
    return run_git(bare, "rev-parse", f"refs/heads/{branch}")


def to(repo: Path, token: str = SECRET) -> Destination:
    return pushing.destination(repo, GITHUB, WEB, token)


def test_a_commit_becomes_a_branch_there_and_again_changes_nothing(repo: Path, bare: Path, work: str) -> None:
    pushing.push(repo, work, BRANCH, to(repo))
    pushing.push(repo, work, BRANCH, to(repo))
    assert there(bare) == work
    assert run_git(bare, "for-each-ref", "--format=%(refname)") == f"refs/heads/{BRANCH}"


def test_more_work_goes_on_top(repo: Path, bare: Path, work: str) -> None:
    pushing.push(repo, work, BRANCH, to(repo))
    more = commit_file(repo, "more.txt", "more\n")
    pushing.push(repo, more, BRANCH, to(repo))
    assert there(bare) == more


@pytest.mark.parametrize("known", [True, False], ids=["fetched", "not fetched"])
def test_what_somebody_else_pushed_is_never_overwritten(repo: Path, bare: Path, work: str, known: bool) -> None:
    run_git(repo, "checkout", "-q", "-b", "other", "main")
    theirs = commit_file(repo, "theirs.txt", "theirs\n")
    run_git(repo, "push", "-q", "origin", f"other:{BRANCH}")
    if not known:
        run_git(repo, "checkout", "-q", "main")
        run_git(repo, "branch", "-q", "-D", "other")
        run_git(repo, "reflog", "expire", "--expire=now", "--all")
        run_git(repo, "gc", "-q", "--prune=now")
    with pytest.raises(RefusedError, match=f"somebody else pushed to {BRANCH}") as refused:
        pushing.push(repo, work, BRANCH, to(repo))
    assert there(bare) == theirs
    assert refused.value.hint.startswith(f"git -C {repo} fetch")


@pytest.mark.parametrize("branch", ["main", "release/1", "services/x", "service/../main", "-f", "+service/x"])
def test_no_other_branch_is_pushed(repo: Path, bare: Path, work: str, branch: str) -> None:
    with pytest.raises(RefusedError, match="only service/"):
        pushing.push(repo, work, branch, to(repo))
    assert run_git(bare, "for-each-ref") == ""


def test_what_the_other_side_refuses_is_said_with_its_words(repo: Path, bare: Path, work: str) -> None:
    hook = bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho 'GH006: Protected branch update failed {SECRET}' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(RefusedError, match="GH006: Protected branch") as refused:
        pushing.push(repo, work, BRANCH, to(repo))
    assert SECRET not in str(refused.value)


def test_nothing_agents_write_into_the_checkout_has_a_say(repo: Path, bare: Path, work: str, tmp_path: Path) -> None:
    ran, elsewhere = tmp_path / "ran", tmp_path / "elsewhere.git"
    subprocess.run(["git", "init", "-q", "--bare", str(elsewhere)], check=True)
    run_git(repo, "tag", "-m", "v1", "v1")
    for name in ("pre-push", "reference-transaction", "post-update"):
        hook = repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    for key, value in (
        ("core.hooksPath", ".git/hooks"),
        ("remote.origin.pushurl", str(elsewhere)),
        (f"url.{elsewhere}.pushInsteadOf", str(bare)),
        (f"url.{elsewhere}.insteadOf", str(bare)),
        ("remote.origin.receivepack", f"touch {ran}; git-receive-pack"),
        ("core.sshCommand", f"touch {ran}"),
        ("credential.helper", f"!touch {ran}"),
        ("push.followTags", "true"),
    ):
        run_git(repo, "config", key, value)
    pushing.push(repo, work, BRANCH, to(repo))
    assert there(bare) == work
    assert not ran.exists()
    assert run_git(elsewhere, "for-each-ref") == ""
    assert run_git(bare, "tag") == ""


def test_what_was_cloned_in_part_is_pushed_too(repo: Path, bare: Path, tmp_path: Path) -> None:
    commit_file(repo, "second.txt", "2\n")
    run_git(repo, "push", "-q", str(bare), "main")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{bare}", "-b", "main", str(shallow)], check=True)
    work = commit_file(shallow, "new.txt", "new\n")
    pushing.push(shallow, work, BRANCH, to(shallow))
    assert there(bare) == work


@pytest.mark.parametrize(
    "url",
    [
        f"https://ann:{SECRET}@github.com/acme/shop.git",
        f"https://{SECRET}@github.com/Acme/Shop",
        "http://github.com/acme/shop.git",
    ],
)
def test_over_https_it_is_githubs_own_address(repo: Path, url: str) -> None:
    run_git(repo, "remote", "add", "upstream", url)
    target = to(repo)
    assert target == Destination("https://github.com/acme/shop.git", WEB, SECRET)
    assert SECRET not in f"{target} {target.printable_url}"


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("git@github.com:acme/shop.git", "git@github.com:acme/shop.git"),
        (f"ssh://git:{SECRET}@github.com/acme/shop.git", "ssh://git@github.com/acme/shop.git"),
        ("git@work:acme/shop.git", "git@work:acme/shop.git"),
        (f"https://ann:{SECRET}@mirror.example/acme/shop.git", "https://mirror.example/acme/shop.git"),
    ],
)
def test_elsewhere_the_token_is_not_shown_and_no_password_is_used(repo: Path, url: str, plain: str) -> None:
    run_git(repo, "remote", "add", "origin", url)
    assert to(repo) == Destination(plain, WEB, "")


@pytest.mark.parametrize("url", ["", f"https://ann:{SECRET}@github.com/somebody/else.git"])
def test_a_missing_remote_is_reported_with_the_command_that_adds_one(repo: Path, url: str) -> None:
    if url:
        run_git(repo, "remote", "add", "origin", url)
    with pytest.raises(RefusedError, match="has no remote to push acme/shop to") as refused:
        to(repo)
    assert refused.value.hint == f"git -C {repo} remote add origin https://github.com/acme/shop.git"


class _Asked(BaseHTTPRequestHandler):
    """A server that refuses all requests, and records their credentials."""

    shown: list[str]

    def do_GET(self) -> None:
        self.shown.append(self.headers.get("authorization", ""))
        self.send_response(403)
        self.end_headers()
        self.wfile.write(f"no: {self.headers.get('authorization', '')}".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    shown: list[str] = []
    handler = type("Handler", (_Asked,), {"shown": shown})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}", shown
        listening.shutdown()


def test_only_github_is_shown_the_token_and_nobody_reads_it(
    repo: Path, work: str, server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    web, shown = server
    seen: list[str] = []
    really = subprocess.Popen

    def popen(command: list[str], **options: object) -> "subprocess.Popen[bytes]":
        seen.extend(command)
        return really(command, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(subprocess, "Popen", popen)
    basic = b64encode(f"x-access-token:{SECRET}".encode()).decode()
    with pytest.raises(ServiceError) as failed:
        pushing.push(repo, work, BRANCH, Destination(f"{web}/acme/shop.git", web, SECRET))
    assert shown == [f"Basic {basic}"]
    with pytest.raises(ServiceError):
        pushing.push(repo, work, BRANCH, Destination(f"{web}/acme/shop.git", WEB, SECRET))
    assert set(shown[1:]) == {""}
    texts = f"{failed.value} {failed.value.__dict__} {seen}"
    assert SECRET not in texts
    assert basic not in texts
    assert isinstance(failed.value, GitError), "it may pass"


def test_over_http_a_token_is_enough(repo: Path, work: str, tmp_path: Path) -> None:
    run_git(repo, "remote", "remove", "origin")
    with GitServer(tmp_path / "served", [SECRET]) as github:
        run_git(repo, "remote", "add", "origin", github.create(GITHUB, repo))
        there = pushing.destination(repo, GITHUB, github.address, SECRET)
        assert (there.url, there.token) == (github.url(GITHUB), SECRET)
        for _ in range(2):
            pushing.push(repo, work, BRANCH, there)
        assert [(each.branch, each.new, each.forced) for each in github.pushes] == [(BRANCH, work, False)]
        assert set(github.users) == {"x-access-token"}


def test_a_refused_token_does_not_prompt_for_a_password(repo: Path, work: str, tmp_path: Path) -> None:
    with GitServer(tmp_path / "served", ["another"]) as github:
        github.create(GITHUB, repo)
        with pytest.raises(GitError, match=r"Authentication failed|could not read") as failed:
            pushing.push(repo, work, BRANCH, Destination(github.url(GITHUB), github.address, SECRET))
        assert SECRET not in str(failed.value)
        assert github.pushes == []


def test_a_protected_branch_is_reported_in_the_server_s_words(repo: Path, work: str, tmp_path: Path) -> None:
    with GitServer(tmp_path / "served", [SECRET]) as github:
        github.create(GITHUB, repo)
        github.protect(GITHUB, BRANCH)
        with pytest.raises(RefusedError, match="GH006: Protected branch update failed"):
            pushing.push(repo, work, BRANCH, Destination(github.url(GITHUB), github.address, SECRET))
        assert github.pushes == []


def test_nobody_waits_for_a_server_that_says_nothing(repo: Path, work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "PUSH_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        web = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(GitError, match="timed out after"):
            pushing.push(repo, work, BRANCH, Destination(f"{web}/acme/shop.git", web))


@pytest.mark.parametrize("url", ["ext::touch {ran}", "fd::7", "ssh://-oProxyCommand=touch {ran}/x"])
def test_an_address_that_would_run_a_program_is_refused(repo: Path, work: str, tmp_path: Path, url: str) -> None:
    ran = tmp_path / "ran"
    with pytest.raises(GitError):
        pushing.push(repo, work, BRANCH, Destination(url.format(ran=ran), WEB))
    assert not ran.exists()
