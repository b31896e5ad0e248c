"""Repositories over HTTP, as GitHub has them: `git http-backend` behind a server that asks for a token.

with GitServer(folder, tokens) as server:
    url = server.create("acme/tool", source)   # a bare copy of a repository of the test
    server.protect("acme/tool", "main")        # pushes to it are refused, in GitHub's words
    server.pull_head("acme/tool", 7, "topic")  # refs/pull/7/head
    ... git push, git fetch with the user `x-access-token` and a token as the password ...
    assert [push.ref for push in server.pushes] == ["refs/heads/topic"]
"""

import base64
import os
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

from tests.github.wire import Reply, Request, Server

NOTHING = "0" * 40
UPDATE = """\
#!/bin/sh
if grep -qxF -- "$1" "$GIT_DIR/protected" 2>/dev/null; then
  echo "error: GH006: Protected branch update failed for $1." >&2
  exit 1
fi
"""
POST_RECEIVE = '#!/bin/sh\ncat >>"$GIT_DIR/pushed"\n'


@dataclass(frozen=True)
class Push:
    repo: str
    ref: str
    old: str
    new: str
    """Zeros where the ref was deleted."""
    forced: bool
    """True if the old commit is no ancestor of the new one."""

    @property
    def branch(self) -> str:
        return self.ref.removeprefix("refs/heads/")


class GitServer:
    def __init__(self, folder: Path, tokens: Collection[str]) -> None:
        """Keep repositories in `folder`; callers with one of the tokens may push."""
        self.folder, self.tokens = folder, tokens
        self.pushes: list[Push] = []
        self.users: list[str] = []
        """The user name of every request; empty without a token."""
        self.on_push: Callable[[Push], object] = lambda push: None
        """Called for every successful push, for example with `lambda push: hub.push(push.branch, push.new)`."""
        self._server = Server(self._answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.down()

    @property
    def address(self) -> str:
        return self._server.address

    def url(self, repo: str) -> str:
        return f"{self.address}/{repo}.git"

    def path(self, repo: str) -> Path:
        return self.folder / f"{repo}.git"

    def create(self, repo: str, source: Path | None = None) -> str:
        """Create an empty repository, or a copy of one; return its address."""
        path = self.path(repo)
        path.parent.mkdir(parents=True, exist_ok=True)
        made = ["init", "--bare", "-q", "-b", "main"] if source is None else ["clone", "--bare", "-q", str(source)]
        _git(*made, str(path))
        for name, value in (("receive.hideRefs", "refs/pull"), ("http.receivepack", "true")):
            _git("-C", str(path), "config", name, value)
        for name, text in (("update", UPDATE), ("post-receive", POST_RECEIVE)):
            hook = path / "hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(text)
            hook.chmod(0o755)
        return self.url(repo)

    def protect(self, repo: str, *branches: str) -> None:
        """Refuse every push to these branches."""
        (self.path(repo) / "protected").write_text("".join(f"refs/heads/{each}\n" for each in branches))

    def pull_head(self, repo: str, number: int, commit: str) -> None:
        """Set a pull request's head ref, to which nobody can push."""
        _git("-C", str(self.path(repo)), "update-ref", f"refs/pull/{number}/head", commit)

    def refs(self, repo: str) -> dict[str, str]:
        """Return the commit of each ref."""
        shown = _git("-C", str(self.path(repo)), "for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split() for line in shown.splitlines())

    def _answer(self, request: Request) -> Reply:
        user, _, token = _basic(request).partition(":")
        known = token in self.tokens
        self.users.append(user if known else "")
        if not known:
            return Reply(401, b"Bad credentials\n", {"WWW-Authenticate": 'Basic realm="GitHub"'})
        repo = "/".join(request.path.split("/")[1:3]).removesuffix(".git")
        if not self.path(repo).is_dir():
            return Reply(404, b"Repository not found.\n")
        reply = self._served(request, user)
        if request.path.endswith("/git-receive-pack"):
            self._record(repo)
        return reply

    def _served(self, request: Request, user: str) -> Reply:
        environment = {
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": request.path,
            "QUERY_STRING": urlencode(dict(request.query)),
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "REMOTE_USER": user,
        }
        words = ["git", "http-backend"]
        done = subprocess.run(
            words, input=request.body, capture_output=True, env=_environment() | environment, check=True
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        return Reply(status, body, {name: value for name, value in headers.items() if name != "Content-Length"})

    def _record(self, repo: str) -> None:
        """Read the hook's record of pushes."""
        pushed = self.path(repo) / "pushed"
        lines = pushed.read_text().splitlines() if pushed.exists() else []
        pushed.unlink(missing_ok=True)
        for old, new, ref in (line.split() for line in lines):
            made = Push(repo, ref, old, new, self._forced(repo, old, new))
            self.pushes.append(made)
            self.on_push(made)

    def _forced(self, repo: str, old: str, new: str) -> bool:
        if NOTHING in (old, new):
            return False
        words = ["git", "-C", str(self.path(repo)), "merge-base", "--is-ancestor", old, new]
        return subprocess.run(words, capture_output=True, env=_environment(), check=False).returncode != 0


def basic(token: str, user: str = "x-access-token") -> str:
    """Return the header for git: `git -c http.extraHeader="Authorization: ..."`."""
    return f"Basic {base64.b64encode(f'{user}:{token}'.encode()).decode()}"


def _basic(request: Request) -> str:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return base64.b64decode(value).decode() if scheme.lower() == "basic" else ""


def _environment() -> dict[str, str]:
    """Return an environment without the machine owner's git configuration."""
    return {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, env=_environment(), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
