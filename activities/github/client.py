"""The only client of GitHub. It counts every request and repeats none; a limit's error says until when to wait (L8).

Retries belong to the workflow, after a check whether the write has happened. Only this process has the account's token;
errors and logs never contain it.
"""

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import gidgethub
import httpx
import jwt
from gidgethub import apps
from gidgethub.abc import GitHubAPI
from sqlalchemy import Engine

from activities.github.credentials import Credentials
from activities.redaction.redact import redact_all
from activities.store.github import account

SECONDS = 20.0
REQUESTER = "delegation-service"
SHORT_WAIT = 60.0
"""GitHub's own advice for a secondary limit that names no time."""
LONG_WAIT = 3600.0
REFUSED_WAIT = 300.0
TOKEN_SPARE = 300.0
"""Seconds before an App's token expires at which the token is renewed."""


class GithubError(Exception):
    """A request to GitHub failed."""


class LimitedError(GithubError):
    """GitHub wants no request before `until`: a quota is used up, or there were too many requests."""

    def __init__(self, why: str, until: float) -> None:
        super().__init__(why)
        self.until = until


class UnknownAccountError(LimitedError):
    """GitHub refuses the account's credentials. A person has to correct them; the next request waits a while."""


class AwayError(GithubError):
    """GitHub can't be reached, or is broken: a write may or may not have happened."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        """The status of GitHub's answer; None if GitHub didn't answer at all."""


class DeclinedError(GithubError):
    """GitHub refuses, and a retry would fail too: not found, no permission, or impossible."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@cache
def _certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """Load the trusted certificates, cached by the two variables that name them."""
    return httpx.create_ssl_context()


class Client(GitHubAPI):
    """A client for one account; `async with` closes its connections."""

    def __init__(self, store: Engine, credentials: Credentials, api_url: str) -> None:
        super().__init__(REQUESTER, oauth_token=credentials.token or None, cache=account.Pages(store), base_url=api_url)
        self._store, self._credentials = store, credentials
        believed = _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        self._http = httpx.AsyncClient(timeout=SECONDS, follow_redirects=False, trust_env=True, verify=believed)
        self._token_until = 0.0
        self.poll_interval = 0.0
        """Polling interval that the last answer asks for."""
        self.requests = 0
        """Number of requests so far."""
        self.was_free = False
        """True if the last answer was cached and cost no quota."""

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **values: str) -> Any:
        """Get one object, or the first page of a list; an unchanged answer comes from the cache and is free."""
        return await self._ask("GET", path, values)

    async def pages(self, path: str, most: int = 10, **values: str) -> list[Any]:
        """Get a list of at most `most` pages."""
        items: list[Any] = []
        more: str | None = path
        while more and most:
            data, more = await self._page(more, values)
            items += data
            most, values = most - 1, {}
        return items

    async def send(self, method: str, path: str, data: Any, **values: str) -> Any:
        """Write, without retries. Secrets are removed (ruling N7)."""
        return await self._ask(method, path, values, redact_all(data))

    async def _page(self, path: str, values: Mapping[str, str]) -> tuple[list[Any], str | None]:
        data, more = await self._exchange("GET", path, values, b"")
        if not isinstance(data, list):
            raise AwayError("GitHub sent an unexpected answer, not a list", status=200)
        return data, more

    async def _ask(self, method: str, path: str, values: Mapping[str, str], data: Any = b"") -> Any:
        answer, _ = await self._exchange(method, path, values, data)
        return answer

    async def _exchange(self, method: str, path: str, values: Mapping[str, str], data: Any) -> tuple[Any, str | None]:
        try:
            await self._authorise()
            answer, more, _ = await self._make_request(method, path, dict(values), data, "application/vnd.github+json")
        except gidgethub.GitHubBroken as error:
            raise AwayError(f"GitHub answers {error.status_code.value}", error.status_code.value) from None
        except gidgethub.HTTPException as error:
            raise _error_of(error) from None
        except gidgethub.GitHubException as error:
            raise AwayError(f"GitHub sent an invalid answer: {type(error).__name__}") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, LookupError, jwt.PyJWTError) as error:
            raise AwayError(f"GitHub cannot be reached: {type(error).__name__}") from None
        return answer, more

    async def _authorise(self) -> None:
        """Renew a GitHub App's token, which lasts an hour."""
        app = self._credentials.app
        if app is None or time.time() < self._token_until - TOKEN_SPARE:
            return
        self.oauth_token = None
        made = await apps.get_installation_access_token(
            self, installation_id=app.installation_id, app_id=app.app_id, private_key=app.private_key
        )
        self.oauth_token = str(made["token"])
        self._token_until = datetime.fromisoformat(str(made["expires_at"])).timestamp()

    @property
    def is_app(self) -> bool:
        return self._credentials.app is not None

    async def app(self) -> dict[str, Any]:
        """Return the GitHub App itself."""
        return await self._as_app("/app")

    async def installation(self, github: str) -> dict[str, Any]:
        """Return the App's installation for a repository."""
        return await self._as_app(f"/repos/{github}/installation")

    async def _as_app(self, path: str) -> dict[str, Any]:
        """Send a request signed with the App's own key."""
        app = self._credentials.app
        assert app is not None
        try:
            key = apps.get_jwt(app_id=app.app_id, private_key=app.private_key)
            answer: dict[str, Any] = await self.getitem(path, jwt=key)
        except gidgethub.HTTPException as error:
            raise _error_of(error) from None
        except (httpx.HTTPError, OSError, ValueError, jwt.PyJWTError) as error:
            raise AwayError(f"the token of the GitHub App cannot be fetched: {type(error).__name__}") from None
        return answer

    @property
    def graphql_url(self) -> str:
        """Return the server's GraphQL URL, derived from the REST URL, which on GitHub Enterprise ends in `/v3`."""
        return f"{self.base_url.removesuffix('/v3')}/graphql"

    @property
    def token(self) -> str:
        """Return the password that git sends; for a GitHub App, its current token."""
        return self.oauth_token or ""

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, Mapping[str, str], bytes]:
        self.requests += 1
        answer = await self._http.request(method, url, headers=dict(headers), content=body)
        self.was_free = answer.status_code == httpx.codes.NOT_MODIFIED
        self.poll_interval = _number(answer.headers.get("x-poll-interval")) or 0.0
        await asyncio.to_thread(self._note, method, url, answer)
        return answer.status_code, answer.headers, answer.content

    def _note(self, method: str, url: str, answer: httpx.Response) -> None:
        wrote = method != "GET" and answer.is_success
        account.count(self._store, repository_in(url), free=self.was_free, wrote=wrote)
        left, reset = _number(answer.headers.get("x-ratelimit-remaining")), answer.headers.get("x-ratelimit-reset")
        facts: dict[str, Any] = {"wrote_at": time.time()} if method != "GET" else {}
        if left is not None:
            quota = _number(answer.headers.get("x-ratelimit-limit"))
            facts |= {"remaining": int(left), "quota": int(quota or 0), "reset_at": _number(reset)}
        if facts:
            account.note(self._store, **facts)

    async def sleep(self, seconds: float) -> None:
        """Raise NotImplementedError: this client reports a wait to its caller instead of sleeping."""
        raise NotImplementedError


def repository_in(url: str) -> str:
    """Return the repository in a URL of GitHub's API; empty if the URL names none."""
    parts = urlsplit(url).path.split("/")
    at = parts.index("repos") if "repos" in parts else -1
    return "/".join(parts[at + 1 : at + 3]) if at >= 0 else ""


def _error_of(error: gidgethub.HTTPException) -> GithubError:
    """Convert an error of GitHub's API: a rate limit carries the time until which to wait; other errors are
    permanent.
    """
    status, headers, now = error.status_code.value, error.headers, time.time()
    message = str(error)[:300]
    wait = _number(headers.get("retry-after"))
    if status == 401:
        return UnknownAccountError(f"{account.REFUSED}: GitHub answers 401: {message}", now + REFUSED_WAIT)
    if status in {403, 429}:
        if wait is not None:
            return LimitedError(f"GitHub asks to wait {wait:g} s", now + wait)
        if headers.get("x-ratelimit-remaining") == "0":
            reset = _number(headers.get("x-ratelimit-reset")) or now + SHORT_WAIT
            return LimitedError("the quota is used up", min(max(reset, now + 1), now + LONG_WAIT))
        if status == 429 or "rate limit" in message.lower() or "abuse" in message.lower():
            return LimitedError("GitHub limits the rate of requests", now + SHORT_WAIT)
    if status in {408, 409} or 300 <= status < 400:
        return AwayError(f"GitHub answers {status}: {message}", status)
    return DeclinedError(status, f"GitHub answers {status}: {message}")


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
