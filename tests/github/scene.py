"""What a test does on GitHub in other people's names, the same on the Hub and on the emulator: by GitHub's own
endpoints, past the record, the faults and the quota."""

import hashlib
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.github.front import Front
from tests.github.state import Role
from tests.github.wire import Json, Request


def sha_of(words: object) -> str:
    """A commit that is made up: the same for the same words."""
    return hashlib.sha1(str(words).encode()).hexdigest()


class Scene(Front):
    """A GitHub with people on it. What is left out is the first repository that was made."""

    tokens: dict[str, str]
    """The token of each login."""
    default_repo: str = ""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = {}

    def user(self, login: str, role: Role | None = None, type: str = "User", repo: str = "") -> str:  # noqa: A002
        """Somebody new, or a new role for somebody known; answers their token."""
        raise NotImplementedError

    def repo(self, full_name: str, private: bool = False, default_branch: str = "main") -> str:
        """A repository with one commit on its default branch; its owner comes with it."""
        raise NotImplementedError

    def issue(self, title: str = "An issue", body: str = "", as_: str = "", repo: str = "") -> int:
        """Opens one; its number."""
        raise NotImplementedError

    def push(self, branch: str, sha: str = "", repo: str = "") -> str:
        """Sets a branch to a commit (a made-up one), there or not; answers the commit."""
        raise NotImplementedError

    def protect(self, branch: str = "main", checks: tuple[str, ...] = ("service/gate",), repo: str = "") -> None:
        """Lets nothing be merged into it until these checks have succeeded."""
        raise NotImplementedError

    def pull(
        self, head: str = "topic", base: str = "", title: str = "A change", body: str = "", draft: bool = False,
        as_: str = "", repo: str = "",
    ) -> int:  # fmt: skip
        """Opens a pull request from a branch, which is made when it is not there; its number."""
        self.push(head, repo=repo)
        into = base or self.ask("GET", self.of(repo))["default_branch"]
        asked = {"title": title, "head": head, "base": into, "body": body, "draft": draft}
        return int(self.ask("POST", f"{self.of(repo)}/pulls", asked, as_ or self.owner(repo))["number"])

    def push_head(self, number: int, sha: str = "", repo: str = "") -> str:
        """A new head for a pull request; answers the commit."""
        branch = self.pull_of(number, repo)["head"]["ref"]
        return self.push(branch, sha, repo)

    def comment(self, as_: str, number: int, body: str, repo: str = "") -> int:
        """Writes a comment; its id."""
        return int(self.ask("POST", f"{self.of(repo)}/issues/{number}/comments", {"body": body}, as_)["id"])

    def edit_comment(self, comment: int, body: str, as_: str = "", repo: str = "") -> None:
        self.ask("PATCH", f"{self.of(repo)}/issues/comments/{comment}", {"body": body}, as_ or self.owner(repo))

    def delete_comment(self, comment: int, as_: str = "", repo: str = "") -> None:
        self.ask("DELETE", f"{self.of(repo)}/issues/comments/{comment}", None, as_ or self.owner(repo))

    def comments(self, number: int, repo: str = "") -> list[Json]:
        """All comments of an issue or pull request, oldest first."""
        return self.all_of(f"{self.of(repo)}/issues/{number}/comments")

    def bodies(self, number: int, repo: str = "") -> list[str]:
        return [each["body"] for each in self.comments(number, repo)]

    def reactions(self, comment: int, repo: str = "") -> list[tuple[str, str]]:
        """Who left which."""
        found = self.all_of(f"{self.of(repo)}/issues/comments/{comment}/reactions")
        return [(each["user"]["login"], each["content"]) for each in found]

    def pull_of(self, number: int, repo: str = "") -> Json:
        found: Json = self.ask("GET", f"{self.of(repo)}/pulls/{number}")
        return found

    def pulls(self, repo: str = "") -> list[Json]:
        """All pull requests, newest first."""
        return self.all_of(f"{self.of(repo)}/pulls?state=all")

    def checks(self, ref: str, repo: str = "") -> list[Json]:
        """The check runs of a commit or branch, the latest of each name."""
        found = self.ask("GET", f"{self.of(repo)}/commits/{ref}/check-runs?per_page=100")["check_runs"]
        return list(found)

    def statuses(self, ref: str, repo: str = "") -> list[Json]:
        """The statuses of a commit or branch, newest first."""
        return self.all_of(f"{self.of(repo)}/commits/{ref}/statuses")

    def merge(self, number: int, as_: str = "", repo: str = "") -> int:
        """Tries to merge; the status of the answer, 200 when it is merged and 405 when GitHub will not."""
        asked = Request(
            "PUT", f"{self.of(repo)}/pulls/{number}/merge", {}, self._headers(as_ or self.owner(repo)), b"{}"
        )
        with self._one_at_a_time:
            return self.respond(asked).status

    def ask(self, method: str, where: str, body: Any = None, as_: str = "") -> Any:
        """One request in somebody's name; fails the test when it is refused."""
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
        """Where a repository's endpoints are."""
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
