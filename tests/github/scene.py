"""Actions of other people on GitHub, for the Hub and the emulator alike: by GitHub's own endpoints, bypassing the
record, the faults and the quota.
"""

import hashlib
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.github.front import Front
from tests.github.state import Role
from tests.github.wire import Json, Request


def sha_of(words: object) -> str:
    """Return a made-up commit, equal for equal words."""
    return hashlib.sha1(str(words).encode()).hexdigest()


class Scene(Front):
    """A GitHub with people. Omitted repositories mean the first one made."""

    tokens: dict[str, str]
    """The token of each login."""
    default_repo: str = ""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = {}

    def user(self, login: str, role: Role | None = None, type: str = "User", repo: str = "") -> str:  # noqa: A002
        """Create a user, or change a known one's role; return their token."""
        raise NotImplementedError

    def repo(self, full_name: str, private: bool = False, default_branch: str = "main") -> str:
        """Create a repository with one commit on its default branch, and its owner."""
        raise NotImplementedError

    def issue(self, title: str = "An issue", body: str = "", as_: str = "", repo: str = "") -> int:
        """Open an issue and return its number."""
        raise NotImplementedError

    def push(self, branch: str, sha: str = "", repo: str = "") -> str:
        """Set a branch to a commit (a made-up one), creating it if needed; return the commit."""
        raise NotImplementedError

    def protect(self, branch: str = "main", checks: tuple[str, ...] = ("service/gate",), repo: str = "") -> None:
        """Require these checks before a merge into the branch."""
        raise NotImplementedError

    def pull(
        self, head: str = "topic", base: str = "", title: str = "A change", body: str = "", draft: bool = False,
        as_: str = "", repo: str = "",
    ) -> int:  # fmt: skip
        """Open a pull request from a branch, creating that if needed; return its number."""
        self.push(head, repo=repo)
        into = base or self.ask("GET", self.of(repo))["default_branch"]
        asked = {"title": title, "head": head, "base": into, "body": body, "draft": draft}
        return int(self.ask("POST", f"{self.of(repo)}/pulls", asked, as_ or self.owner(repo))["number"])

    def push_head(self, number: int, sha: str = "", repo: str = "") -> str:
        """Push a new head of a pull request, and return the commit."""
        branch = self.pull_of(number, repo)["head"]["ref"]
        return self.push(branch, sha, repo)

    def comment(self, as_: str, number: int, body: str, repo: str = "") -> int:
        """Write a comment and return its id."""
        return int(self.ask("POST", f"{self.of(repo)}/issues/{number}/comments", {"body": body}, as_)["id"])

    def edit_comment(self, comment: int, body: str, as_: str = "", repo: str = "") -> None:
        self.ask("PATCH", f"{self.of(repo)}/issues/comments/{comment}", {"body": body}, as_ or self.owner(repo))

    def delete_comment(self, comment: int, as_: str = "", repo: str = "") -> None:
        self.ask("DELETE", f"{self.of(repo)}/issues/comments/{comment}", None, as_ or self.owner(repo))

    def comments(self, number: int, repo: str = "") -> list[Json]:
        """Return all comments of an issue or pull request, oldest first."""
        return self.all_of(f"{self.of(repo)}/issues/{number}/comments")

    def bodies(self, number: int, repo: str = "") -> list[str]:
        return [each["body"] for each in self.comments(number, repo)]

    def reactions(self, comment: int, repo: str = "") -> list[tuple[str, str]]:
        """Return each reaction as login and content."""
        found = self.all_of(f"{self.of(repo)}/issues/comments/{comment}/reactions")
        return [(each["user"]["login"], each["content"]) for each in found]

    def pull_of(self, number: int, repo: str = "") -> Json:
        found: Json = self.ask("GET", f"{self.of(repo)}/pulls/{number}")
        return found

    def pulls(self, repo: str = "") -> list[Json]:
        """Return all pull requests, newest first."""
        return self.all_of(f"{self.of(repo)}/pulls?state=all")

    def checks(self, ref: str, repo: str = "") -> list[Json]:
        """Return the check runs of a commit or branch, the latest of each name."""
        found = self.ask("GET", f"{self.of(repo)}/commits/{ref}/check-runs?per_page=100")["check_runs"]
        return list(found)

    def statuses(self, ref: str, repo: str = "") -> list[Json]:
        """Return the statuses of a commit or branch, newest first."""
        return self.all_of(f"{self.of(repo)}/commits/{ref}/statuses")

    def merge(self, number: int, as_: str = "", repo: str = "") -> int:
        """Try to merge; return the answer's status, 200 if merged and 405 if GitHub refuses."""
        asked = Request(
            "PUT", f"{self.of(repo)}/pulls/{number}/merge", {}, self._headers(as_ or self.owner(repo)), b"{}"
        )
        with self._one_at_a_time:
            return self.respond(asked).status

    def ask(self, method: str, where: str, body: Any = None, as_: str = "") -> Any:
        """Send one request in somebody's name; fail the test if it is refused."""
        parts = urlsplit(where)
        sent = b"" if body is None else json.dumps(body).encode()
        headers = self._headers(as_ or self.owner(""))
        with self._one_at_a_time:
            reply = self.respond(Request(method, parts.path, dict(parse_qsl(parts.query)), headers, sent))
        assert reply.status < 400, f"{method} {where} as {as_}: {reply.status} {reply.body}"
        return json.loads(reply.content() or b"null")

    def all_of(self, where: str) -> list[Json]:
        found: list[Json] = []
        sign = "&" if "?" in where else "?"
        while page := self.ask("GET", f"{where}{sign}per_page=100&page={len(found) // 100 + 1}"):
            found += page
            if len(page) < 100:
                break
        return found

    def of(self, repo: str) -> str:
        """Return the path of a repository's endpoints."""
        return f"/repos/{repo or self.default_repo}"

    def owner(self, repo: str) -> str:
        return (repo or self.default_repo).partition("/")[0]

    def _headers(self, login: str) -> dict[str, str]:
        known = {
            "host": self.address.removeprefix("http://"),
            "user-agent": "tests",
            "content-type": "application/json",
        }
        return {**known, **({"authorization": f"token {self.tokens[login]}"} if login else {})}
