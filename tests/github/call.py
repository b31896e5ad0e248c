"""The caller of the Hub, the caller's permission, and the routes."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.github import shapes
from tests.github.router import RefusedError, Router, not_found
from tests.github.state import ROLES, App, Issue, Repo, Role, Token, User, World
from tests.github.wire import Json, Request


@dataclass(frozen=True)
class Call:
    world: World
    base: str
    token: Token | None = None
    app: App | None = None
    """Set where the request came with the JWT of an App."""

    @property
    def viewer(self) -> User:
        if self.token is None:
            raise RefusedError(401, "Requires authentication")
        return self.world.users[self.token.login.lower()]

    @property
    def me(self) -> Json:
        return shapes.user(self.viewer, self.base)

    @property
    def now(self) -> datetime:
        return self.world.now()

    def role(self, repository: Repo) -> Role:
        return repository.role_of(self.token.login) if self.token else repository.role_of("")

    def repo(self, owner: str, repo: str, need: Role = "read") -> Repo:
        """Return the repository; raise 404 if the caller may not know of it, 403 if the role is too low."""
        repository = self.world.repos.get(f"{owner}/{repo}".lower())
        if repository is None or self.role(repository) == "none":
            raise not_found()
        if ROLES.index(self.role(repository)) < ROLES.index(need):
            self.viewer  # noqa: B018 # without a token it is 401
            raise RefusedError(
                403,
                "Resource not accessible by integration"
                if self._is_app
                else "Must have push access to this repository.",
            )
        return repository

    def issue(self, repository: Repo, number: str) -> Issue:
        if not number.isdigit() or int(number) not in repository.issues:
            raise not_found()
        return repository.issues[int(number)]

    @property
    def by_app(self) -> App:
        """Return the App whose installation calls: only Apps may write check runs."""
        if not self._is_app or self.token is None:
            raise RefusedError(403, "You must authenticate via a GitHub App.")
        login = self.token.login
        return next(each for each in self.world.apps.values() if f"{each.slug}[bot]" == login)

    @property
    def _is_app(self) -> bool:
        return self.token is not None and self.token.kind == "installation"


def call_of(world: World, request: Request, base: str) -> Call:
    credential = request.credential
    if not credential:
        return Call(world, base)
    if credential.count(".") == 2:
        return Call(world, base, app=_app_of(world, credential))
    token = world.tokens.get(credential)
    if token is None or (token.expires is not None and token.expires <= world.clock()):
        raise RefusedError(401, "Bad credentials")
    return Call(world, base, token)


def _app_of(world: World, jwt: str) -> App:
    """Return the App that a JWT claims to be; the Hub does not verify its signature."""
    head, claims = (_decoded(part) for part in jwt.split(".")[:2])
    app = world.apps.get(int(claims.get("iss", 0)))
    now = datetime.now(UTC).timestamp()
    if head.get("alg") != "RS256" or app is None:
        raise RefusedError(401, "A JSON web token could not be decoded")
    if not now - 60 < claims.get("exp", 0) <= now + 600 + 60:
        raise RefusedError(401, "'Expiration time' claim ('exp') is too far in the future")
    return app


def _decoded(part: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        raise RefusedError(401, "A JSON web token could not be decoded") from None


ROUTES: Router[Call] = Router()
"""All routes of the Hub; the modules of its endpoints fill it."""
