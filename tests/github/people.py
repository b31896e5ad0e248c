"""Endpoints of the Hub: identities, repositories, permissions, GitHub Apps."""

import secrets
from datetime import timedelta

from tests.github import shapes
from tests.github.call import ROUTES, Call
from tests.github.router import RefusedError, not_found
from tests.github.state import App, Repo, Token, stamp
from tests.github.wire import Json, Reply, Request

LEGACY = {"maintain": "write", "triage": "read"}
"""Roles whose name in the field `permission` is an older one."""
ONLY_HERE = ("network_count", "subscribers_count")
"""Fields that only the repository's own endpoint shows."""


@ROUTES.on("GET", "/rate_limit")
def rate_limit(call: Call, request: Request) -> Reply:
    return Reply(200, {})


@ROUTES.on("GET", "/user")
def user(call: Call, request: Request) -> Reply:
    if call.token and call.token.kind == "installation":
        raise RefusedError(403, "Resource not accessible by integration")
    return Reply(200, shapes.myself(call.viewer, call.base))


@ROUTES.on("GET", "/users/{login}")
def of_login(call: Call, request: Request, login: str) -> Reply:
    user = call.world.users.get(login.lower())
    if user is None:
        raise not_found()
    return Reply(200, shapes.myself(user, call.base))


@ROUTES.on("GET", "/repos/{owner}/{repo}")
def repository(call: Call, request: Request, owner: str, repo: str) -> Reply:
    asked_repository = call.repo(owner, repo)
    answer = shapes.repo(asked_repository, call.base, call.role(asked_repository)) | dict.fromkeys(ONLY_HERE, 0)
    if call.token is None:
        del answer["permissions"]
    return Reply(200, answer)


@ROUTES.on("GET", "/repos/{owner}/{repo}/collaborators/{login}/permission")
def permission(call: Call, request: Request, owner: str, repo: str, login: str) -> Reply:
    repository = call.repo(owner, repo)
    if call.role(repository) not in ("write", "maintain", "admin"):
        raise RefusedError(403, "Must have push access to view collaborator permission.")
    person = call.world.users.get(login.lower())
    if person is None:
        raise not_found()
    return Reply(200, permission_of(repository.role_of(login), shapes.user(person, call.base)))


def permission_of(role: str, user: Json) -> Json:
    rank = ("read", "triage", "write", "maintain", "admin")
    may = rank.index(role) if role in rank else -1
    named = zip(("pull", "triage", "push", "maintain", "admin"), range(5), strict=True)
    whole = {**user, "permissions": {name: place <= may for name, place in named}, "role_name": role}
    return {"permission": LEGACY.get(role, role), "user": whole, "role_name": role}


@ROUTES.on("GET", "/app")
def app(call: Call, request: Request) -> Reply:
    return Reply(200, shapes.app(_app(call), call.base))


@ROUTES.on("GET", "/repos/{owner}/{repo}/installation")
def installation(call: Call, request: Request, owner: str, repo: str) -> Reply:
    repository = call.world.repos.get(f"{owner}/{repo}".lower())
    number = repository and _installed(_app(call), repository)
    if not repository or not number:
        raise not_found()
    return Reply(200, _installation(call, _app(call), repository, number))


@ROUTES.on("POST", "/app/installations/{number}/access_tokens")
def access_token(call: Call, request: Request, number: str) -> Reply:
    if not number.isdigit() or int(number) not in _app(call).installations:
        raise not_found()
    token, expires = f"ghs_{secrets.token_urlsafe(24)}", call.now + timedelta(hours=1)
    call.world.tokens[token] = Token(f"{_app(call).slug}[bot]", "", "installation", expires)
    permissions = shapes.app(_app(call), call.base)["permissions"]
    return Reply(
        201,
        {"token": token, "expires_at": stamp(expires), "permissions": permissions, "repository_selection": "all"},
    )


def _app(call: Call) -> App:
    if call.app is None:
        raise RefusedError(401, "A JSON web token could not be decoded")
    return call.app


def _installed(app: App, repository: Repo) -> int | None:
    owner = repository.owner.login
    return next((number for number, account in app.installations.items() if account.login == owner), None)


def _installation(call: Call, app: App, repository: Repo, number: int) -> Json:
    url = f"{call.base}/app/installations/{number}"
    answer = shapes.app(app, call.base)
    return {
        "id": number,
        "account": shapes.user(repository.owner, call.base),
        "repository_selection": "all",
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{call.base}/installation/repositories",
        "html_url": f"{shapes.HTML}/settings/installations/{number}",
        "app_id": app.id,
        "app_slug": app.slug,
        "target_id": repository.owner.id,
        "target_type": repository.owner.type,
        **{name: answer[name] for name in ("permissions", "events", "created_at", "updated_at")},
        **dict.fromkeys(("single_file_name", "suspended_by", "suspended_at")),
    }
