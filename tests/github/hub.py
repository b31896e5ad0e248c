"""A small GitHub of our own for the tests: fast, in a thread of the test, on a free port of 127.0.0.1.

    with Hub() as hub:
        hub.repo("acme/tool")                      # with its owner and `main`; meant where none is named
        ann = hub.user("ann", role="write")        # her token; roles: admin maintain write triage read none
        number = hub.pull("topic", draft=True)     # opened by the owner; hub.issue("Title") likewise
        hub.comment(as_="ann", number=number, body="/service status")
        ... the product, pointed at hub.address with a token ...
        assert hub.bodies(number) == [...]

What others did (all take `repo="owner/name"` too): `comment`, `edit_comment`, `delete_comment`, `push_head(number)`,
`push(branch)`, `pull`, `issue`, `protect(branch, checks)`, `merge(number)` (200 or 405), `close(number)`.

What is there now: `comments(number)`, `bodies(number)`, `reactions(comment)` as (login, content), `pull_of(number)`,
`pulls()`, `checks(sha)`, `statuses(sha)`. Anything else: `ask("GET", "/repos/...", as_="ann")`.

What was asked: `requests` (each a `Seen`: method, path, query, status, free, authorized, done, body, at), `lines()`,
`writes()`.

What goes wrong: `fail(match, times, status, headers, body)`, `cut(match)`, `after_write(match, "502" or "cut")` (it is
done, the reply is lost), `delay(match, seconds)`, `primary_limit(match)`, `secondary_limit(match, retry_after=2)`,
`down()`, `up()`. A match is `"POST /repos/*/comments"` or a function of the request. The quota: `quota.limit = 10`,
`quota.renew()`. Sent with every GET: `poll_interval = 60`.

Also: `comment(..., at=datetime)`, `Hub(clock)`, `token(login)`, `expire(token)`, `revoke(token)`, `app(id)`,
`installation_token()`. What others do bypasses the record, the faults and the quota.

As on GitHub: ETag and 304 (free with a token), `Link`, the headers of the quota, big ids, whole seconds; the permission
of somebody who has none is `read` or `none` and not 404, `maintain` is the permission `write`; drafts become ready by
GraphQL only; check runs are refused (403) to who is no GitHub App; a merge is refused while a required check has not
succeeded. Unlike GitHub, an edited comment always bears a later date than the one it was written at. What the Hub does
not know is answered 404 and listed in `unknown`.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from tests.github import check_runs, people, pulls, threads  # noqa: F401 # they fill the routes
from tests.github.call import ROUTES, call_of
from tests.github.front import Front
from tests.github.router import RefusedError, not_found
from tests.github.state import App, Issue, Repo, Role, Token, User, World, stamp
from tests.github.wire import Json, Reply, Request


def sha_of(words: object) -> str:
    """Return a made-up commit, equal for equal words."""
    return hashlib.sha1(str(words).encode()).hexdigest()


class Hub(Front):
    """A GitHub with people. Omitted repositories mean the first one made."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        super().__init__()
        self.tokens: dict[str, str] = {}
        """The token of each login."""
        self.default_repo = ""
        self.world = World()
        self.unknown: list[str] = []
        if clock is not None:
            self.world.clock = clock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def respond(self, request: Request) -> Reply:
        base = f"http://{request.headers.get('host') or 'api.github.com'}"
        try:
            call = call_of(self.world, request, base)
            json.loads(request.body or b"{}")
        except RefusedError as refused:
            return refused.reply
        except ValueError:
            return Reply(400, {"message": "Problems parsing JSON"})
        reply = ROUTES.answer(call, request)
        if reply is None:
            self.unknown.append(request.line)
            return not_found().reply
        if call.token and call.token.kind == "classic":
            reply.headers |= {"X-OAuth-Scopes": call.token.scopes, "X-Accepted-OAuth-Scopes": "repo"}
        if call.token and call.token.expires and call.token.kind != "installation":
            expires = str(stamp(call.token.expires)).replace("T", " ").replace("Z", " UTC")
            reply.headers["github-authentication-token-expiration"] = expires
        return reply

    def user(self, login: str, role: Role | None = None, type: str = "User", repo: str = "") -> str:  # noqa: A002
        """Create a user, or change a known one's role; return their token."""
        if login.lower() not in self.world.users:
            self.world.users[login.lower()] = User(next(self.world.ids), login, type)
            self.tokens[login] = self.token(login)
        if role is not None:
            self.repository(repo).roles[login.lower()] = role
        return self.tokens[login]

    def token(
        self,
        login: str,
        scopes: str = "repo",
        kind: Literal["classic", "fine"] = "classic",
        expires: datetime | None = None,
    ) -> str:
        """Create another token of a user."""
        name = f"{'ghp' if kind == 'classic' else 'github_pat'}_{sha_of((login, len(self.world.tokens)))[:36]}"
        self.world.tokens[name] = Token(login, scopes, kind, expires)
        return name

    def revoke(self, token: str) -> None:
        """Revoke a token: from now on it is 401."""
        del self.world.tokens[token]

    def expire(self, token: str) -> None:
        self.world.tokens[token].expires = self.world.now()

    def app(self, number: int = 4242, slug: str = "our-service", account: str = "", role: Role = "write") -> int:
        """Install a GitHub App on an account (the first repository's owner); return the installation's id."""
        owner = self.world.users[(account or self.owner("")).lower()]
        self.user(f"{slug}[bot]", type="Bot")
        for repository in self.world.repos.values():
            if repository.owner is owner:
                repository.roles[f"{slug}[bot]".lower()] = role
        installation = next(self.world.ids)
        self.world.apps[number] = App(number, slug, owner, self.world.now(), {installation: owner})
        return installation

    def installation_token(self, slug: str = "our-service") -> str:
        """Return an App's token, without its endpoints."""
        name = f"ghs_{sha_of((slug, len(self.world.tokens)))[:36]}"
        self.world.tokens[name] = Token(f"{slug}[bot]", "", "installation")
        return name

    def repo(self, full_name: str, private: bool = False, default_branch: str = "main") -> str:
        """Create a repository with one commit on its default branch, and its owner."""
        owner, _, name = full_name.partition("/")
        self.user(owner)
        person = self.world.users[owner.lower()]
        made = Repo(
            next(self.world.ids), person, name, self.world.now(), default_branch, private, {owner.lower(): "admin"}
        )
        self.world.repos[full_name.lower()] = made
        self.default_repo = self.default_repo or full_name
        self.push(default_branch, repo=full_name)
        return full_name

    def repository(self, full_name: str = "") -> Repo:
        """Return the repository's object, for everything without a method."""
        return self.world.repos[(full_name or self.default_repo).lower()]

    def issue(self, title: str = "An issue", body: str = "", as_: str = "", repo: str = "") -> int:
        """Open an issue and return its number."""
        repository, now = self.repository(repo), self.world.now()
        author = self.world.users[as_.lower()] if as_ else repository.owner
        number = max(repository.issues, default=0) + 1
        repository.issues[number] = Issue(next(self.world.ids), number, author, title, body, now, now)
        return number

    def close(self, number: int, repo: str = "") -> None:
        issue = self.repository(repo).issues[number]
        issue.state, issue.closed_at = "closed", self.world.now()

    def push(self, branch: str, sha: str = "", repo: str = "") -> str:
        """Set a branch to a commit (a made-up one), creating it if needed; return the commit."""
        repository = self.repository(repo)
        commit = sha or sha_of((repository.full_name, branch, len(repository.commits)))
        repository.branches[branch] = commit
        repository.commits.add(commit)
        for issue in repository.issues.values():
            if issue.pull and issue.pull.head == branch and issue.state == "open":
                issue.pull.sha, issue.updated = commit, self.world.now()
        return commit

    def protect(self, branch: str = "main", checks: tuple[str, ...] = ("service/gate",), repo: str = "") -> None:
        """Require these checks before a merge into the branch."""
        self.repository(repo).protected[branch] = list(checks)

    def comment(self, as_: str, number: int, body: str, repo: str = "", at: datetime | None = None) -> int:
        """Write a comment and return its id."""
        made = int(self.ask("POST", f"{self.of(repo)}/issues/{number}/comments", {"body": body}, as_)["id"])
        if at is not None:
            threads.dated(self.repository(repo).comments[made], at.astimezone(UTC))
        return made

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
        reactions = self.all_of(f"{self.of(repo)}/issues/comments/{comment}/reactions")
        return [(each["user"]["login"], each["content"]) for each in reactions]

    def pull_of(self, number: int, repo: str = "") -> Json:
        pull: Json = self.ask("GET", f"{self.of(repo)}/pulls/{number}")
        return pull

    def pulls(self, repo: str = "") -> list[Json]:
        """Return all pull requests, newest first."""
        return self.all_of(f"{self.of(repo)}/pulls?state=all")

    def checks(self, ref: str, repo: str = "") -> list[Json]:
        """Return the check runs of a commit or branch, the latest of each name."""
        latest = self.ask("GET", f"{self.of(repo)}/commits/{ref}/check-runs?per_page=100")["check_runs"]
        return list(latest)

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
        items: list[Json] = []
        sign = "&" if "?" in where else "?"
        while page := self.ask("GET", f"{where}{sign}per_page=100&page={len(items) // 100 + 1}"):
            items += page
            if len(page) < 100:
                break
        return items

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
