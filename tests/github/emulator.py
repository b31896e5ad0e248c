"""The emulator of `dev-cluster/github-tools` behind our own proxy: another GitHub with the Hub's interface.

People, repositories and Apps are set up before the first request; a role may change later. The emulator makes its
commits itself; one that a test names in `push` and `push_head` is addressed by that name in both directions.
"""

import json
import tempfile
from pathlib import Path
from typing import Any, Self

from tests.github.commits import Commits
from tests.github.description import Known
from tests.github.gaps import GAPS, Gaps, as_github_writes
from tests.github.keys import app_jwt, private_key
from tests.github.router import RefusedError
from tests.github.scene import Scene, sha_of
from tests.github.state import Role
from tests.github.tools import need
from tests.github.upstream import Upstream, free_port
from tests.github.wire import Json, Reply, Request

PERMISSION = {"read": "pull", "write": "push"}
"""The emulator's names of roles."""
RIGHTS = {"checks": "write", "contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"}

KNOWN = (
    Known(r"check-runs\b.*: \"annotations_url\" is a required", "the emulator leaves out where annotations are"),
    Known(r"/branches/[^/]+ 200 /(commit)?: .* is a required", "the emulator shows a branch's commit by its sha alone"),
    Known(r"/protection 200 /(required_pull_request_reviews|restrictions): null", "the emulator names what is not set"),
    Known(r"GET /app 200 /: ", "the emulator leaves out the owner of the App"),
    Known(r"/installation 200 /: \"target_id\" is a required", "the emulator leaves out the account's id here"),
    Known(r"/installation 200 /account: ", "the emulator shows a shorter account"),
    Known(
        r"GET /repos/[^/]+/[^/]+ 200 /: \"(network|subscribers)_count\" is a req", "the emulator does not count these"
    ),
)
"""Replies of the emulator that differ from GitHub's; we read none of these fields."""


class Emulator(Scene):
    def __init__(self) -> None:
        self._command = need("emulate")
        super().__init__()
        self._people: list[str] = []
        self._repos: dict[str, Json] = {}
        self._roles: list[tuple[str, str, Role]] = []
        self._barred: set[tuple[str, str]] = set()
        self._apps: list[Json] = []
        self._installations: dict[str, str] = {}
        self._pushed = 0
        self._commits = Commits()
        self._process: Upstream | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="emulator-")
        self.gaps = Gaps(
            self._forward,
            lambda: list(self._repos),
            self._role_without,
            lambda token: self._installations.get(token, ""),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        super().stop()
        if self._process is not None:
            self._process.stop()
        self._folder.cleanup()

    def respond(self, request: Request) -> Reply:
        """Answer from the gaps or the emulator; an unknown token, which the emulator takes as its first user's, is
        401.
        """
        known = {*self.tokens.values(), *self._installations, ""}
        if request.credential not in known and request.credential.count(".") != 2:
            return RefusedError(401, "Bad credentials").reply
        reply = GAPS.answer(self.gaps, request) or self._forward(request)
        if request.path.endswith("/access_tokens") and reply.status == 201:
            app = next(
                each for each in self._apps if f"/{each['installations'][0]['installation_id']}/" in request.path
            )
            self._installations[reply.body["token"]] = f"{app['slug']}[bot]"
        return reply

    def user(self, login: str, role: Role | None = None, type: str = "User", repo: str = "") -> str:  # noqa: A002
        if login not in self.tokens:
            self._only_before()
            self._people.append(login)
            self.tokens[login] = f"ghp_{sha_of(login)[:36]}"
        if role is not None:
            self._give(repo or self.default_repo, login, role)
        return self.tokens[login]

    def repo(self, full_name: str, private: bool = False, default_branch: str = "main") -> str:
        self._only_before()
        owner, _, name = full_name.partition("/")
        self.user(owner)
        settings = {"owner": owner, "name": name, "auto_init": True, "private": private}
        self._repos[full_name] = {**settings, "default_branch": default_branch}
        self.default_repo = self.default_repo or full_name
        return full_name

    def app(self, number: int = 4242, slug: str = "our-service", account: str = "", role: Role = "write") -> int:
        """Install a GitHub App on an account; its key is `keys.private_key()`."""
        self._only_before()
        installation = {"installation_id": 100 + number, "account": account or self.owner("")}
        about = {"app_id": number, "slug": slug, "name": slug, "private_key": private_key(), "permissions": RIGHTS}
        events = ["issue_comment", "pull_request"]
        chosen = {"repository_selection": "all", "permissions": RIGHTS, "events": events}
        self._apps.append({**about, "events": events, "installations": [{**installation, **chosen}]})
        return 100 + number

    def installation_token(self, slug: str = "our-service") -> str:
        app = next(each for each in self._apps if each["slug"] == slug)
        key = Path(self._folder.name, "key.pem")
        key.write_text(app["private_key"])
        headers = {"authorization": f"Bearer {app_jwt(app['app_id'], str(key))}", "user-agent": "tests"}
        where = f"/app/installations/{app['installations'][0]['installation_id']}/access_tokens"
        made = self.respond(Request("POST", where, {}, headers, b"{}"))
        assert made.status == 201, made
        return str(made.body["token"])

    def issue(self, title: str = "An issue", body: str = "", as_: str = "", repo: str = "") -> int:
        asked = {"title": title, "body": body}
        return int(self.ask("POST", f"{self.of(repo)}/issues", asked, as_ or self.owner(repo))["number"])

    def push(self, branch: str, sha: str = "", repo: str = "") -> str:
        made = self._push(branch, repo)
        if sha:
            self._commits.call(made, sha)
        return sha or made

    def _push(self, branch: str, repo: str) -> str:
        """Push a commit and return its name; setting a branch again gives the commit a new name."""
        base, owner = self.of(repo), self.owner(repo)
        heads = {each["head"]["ref"]: each["number"] for each in self.all_of(f"{base}/pulls?state=open")}
        if branch in heads:  # only this moves the head of a pull request in the emulator
            self.ask("PUT", f"{base}/pulls/{heads[branch]}/update-branch", {}, owner)
            return str(self.pull_of(heads[branch], repo)["head"]["sha"])
        found = [each for each in self.ask("GET", f"{base}/branches?per_page=100") if each["name"] == branch]
        main = self.ask("GET", base)["default_branch"]
        before = (found[0] if found else self.ask("GET", f"{base}/branches/{main}"))["commit"]["sha"]
        self._pushed += 1
        tree = self.ask("GET", f"{base}/git/commits/{before}")["tree"]["sha"]
        asked = {"message": f"Change {self._pushed}", "tree": tree, "parents": [before]}
        made = str(self.ask("POST", f"{base}/git/commits", asked, owner)["sha"])
        if found:
            self.ask("PATCH", f"{base}/git/refs/heads/{branch}", {"sha": made}, owner)
        else:
            self.ask("POST", f"{base}/git/refs", {"ref": f"refs/heads/{branch}", "sha": made}, owner)
        return made

    def protect(self, branch: str = "main", checks: tuple[str, ...] = ("service/gate",), repo: str = "") -> None:
        required = {"strict": False, "contexts": list(checks)}
        rest = {"enforce_admins": True, "required_pull_request_reviews": None, "restrictions": None}
        where = f"{self.of(repo)}/branches/{branch}/protection"
        self.ask("PUT", where, {"required_status_checks": required, **rest}, self.owner(repo))

    def _give(self, repo: str, login: str, role: Role) -> None:
        if role == "none":
            self._barred.add((repo, login))
        if self._process is None:
            self._roles.append((repo, login, role))
            return
        where, owner = f"/repos/{repo}/collaborators/{login}", self.owner(repo)
        if role == "none":
            self.ask("DELETE", where, None, owner)
        else:
            self.ask("PUT", where, {"permission": PERMISSION.get(role, role)}, owner)

    def _role_without(self, repo: str, login: str) -> str:
        return "none" if (repo, login) in self._barred or self._repos[repo]["private"] else "read"

    def _only_before(self) -> None:
        assert self._process is None, "people and repositories are told to the emulator before its first request"

    def _forward(self, request: Request) -> Reply:
        process = self._started()
        reply = self._commits.answered(process.ask(self._commits.asked(request)))
        reply.body = as_github_writes(reply.body, self.gaps.edited)
        if "link" in reply.headers:
            reply.headers["Link"] = reply.headers.pop("link").replace(process.address, self.address)
        return reply

    def _started(self) -> Upstream:
        if self._process is None:
            seed = Path(self._folder.name, "seed.yaml")
            seed.write_text(json.dumps(self._seed()))  # JSON is YAML
            port = free_port()
            words = [str(self._command), "--service", "github", "--port", str(port), "--seed", str(seed)]
            self._process = Upstream([*words, "--base-url", self.address], port, "/meta")
            for repo, login, role in self._roles:
                if role != "none":
                    self._give(repo, login, role)
        return self._process

    def _seed(self) -> dict[str, Any]:
        tokens = {self.tokens[each]: {"login": each, "scopes": ["repo", "user"]} for each in self._people}
        users = [{"login": each} for each in self._people]
        return {"tokens": tokens, "github": {"users": users, "repos": list(self._repos.values()), "apps": self._apps}}
