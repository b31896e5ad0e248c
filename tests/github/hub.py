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

Only in the Hub: `comment(..., at=datetime)`, `Hub(clock)`, `token(login)`, `expire(token)`, `revoke(token)`, `app(id)`,
`installation_token()`.

As on GitHub: ETag and 304 (free with a token), `Link`, the headers of the quota, big ids, whole seconds; the permission
of somebody who has none is `read` or `none` and not 404, `maintain` is the permission `write`; drafts become ready by
GraphQL only; check runs are refused (403) to who is no GitHub App; a merge is refused while a required check has not
succeeded. Unlike GitHub, an edited comment always bears a later date than the one it was written at. What the Hub does
not know is answered 404 and listed in `unknown`.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, Self

from tests.github import check_runs, people, pulls, threads  # noqa: F401 # they fill the routes
from tests.github.call import ROUTES, call_of
from tests.github.router import RefusedError, not_found
from tests.github.scene import Scene, sha_of
from tests.github.state import App, Issue, Repo, Role, Token, User, World, stamp
from tests.github.wire import Reply, Request


class Hub(Scene):
    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        super().__init__()
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
        for each in self.world.repos.values():
            if each.owner is owner:
                each.roles[f"{slug}[bot]".lower()] = role
        installation = next(self.world.ids)
        self.world.apps[number] = App(number, slug, owner, self.world.now(), {installation: owner})
        return installation

    def installation_token(self, slug: str = "our-service") -> str:
        """Return an App's token, without its endpoints."""
        name = f"ghs_{sha_of((slug, len(self.world.tokens)))[:36]}"
        self.world.tokens[name] = Token(f"{slug}[bot]", "", "installation")
        return name

    def repo(self, full_name: str, private: bool = False, default_branch: str = "main") -> str:
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
        repository, now = self.repository(repo), self.world.now()
        author = self.world.users[as_.lower()] if as_ else repository.owner
        number = max(repository.issues, default=0) + 1
        repository.issues[number] = Issue(next(self.world.ids), number, author, title, body, now, now)
        return number

    def close(self, number: int, repo: str = "") -> None:
        issue = self.repository(repo).issues[number]
        issue.state, issue.closed_at = "closed", self.world.now()

    def push(self, branch: str, sha: str = "", repo: str = "") -> str:
        repository = self.repository(repo)
        commit = sha or sha_of((repository.full_name, branch, len(repository.commits)))
        repository.branches[branch] = commit
        repository.commits.add(commit)
        for issue in repository.issues.values():
            if issue.pull and issue.pull.head == branch and issue.state == "open":
                issue.pull.sha, issue.updated = commit, self.world.now()
        return commit

    def protect(self, branch: str = "main", checks: tuple[str, ...] = ("service/gate",), repo: str = "") -> None:
        self.repository(repo).protected[branch] = list(checks)

    def comment(self, as_: str, number: int, body: str, repo: str = "", at: datetime | None = None) -> int:
        made = super().comment(as_, number, body, repo)
        if at is not None:
            threads.dated(self.repository(repo).comments[made], at.astimezone(UTC))
        return made
