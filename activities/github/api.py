"""GitHub's endpoints: one function for each, with the service's models as arguments and results."""

from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from activities.github.client import AwayError, Client, DeclinedError
from activities.github.models import (
    Branch,
    CheckRun,
    CheckRuns,
    GithubAnswer,
    GitRef,
    Issue,
    IssueComment,
    Person,
    Pull,
    RateLimit,
    RateLimits,
    Reaction,
    Repository,
)

MOST_ANNOTATIONS = 50
PER_PAGE = "100"


async def whoami(client: Client) -> Person:
    """Return the service's GitHub account; for a GitHub App, the bot of its name."""
    if client.oauth_token and not client.is_app:
        return _read(Person, await client.get("/user"))
    app = await client.app()
    return Person(login=f"{app['slug']}[bot]", id=0, type="Bot")


async def quota(client: Client) -> RateLimit:
    """Return the remaining requests of this hour. The request costs no quota."""
    return _read(RateLimits, await client.get("/rate_limit")).resources.core


async def repository(client: Client, github: str) -> Repository:
    return _read(Repository, await client.get(f"/repos/{github}"))


async def issue(client: Client, github: str, number: int) -> Issue:
    """Return an issue, or a pull request with the fields that issues have, too."""
    return _read(Issue, await client.get(f"/repos/{github}/issues/{number}"))


async def permission(client: Client, github: str, login: str) -> str:
    """Return a person's permission on the repository: `admin`, `maintain`, `write`, `triage`, `read` or `none`."""
    try:
        answer = await client.get(f"/repos/{github}/collaborators/{{login}}/permission", login=login)
    except DeclinedError as error:
        if error.status == 404:
            return "none"
        raise
    return str(answer.get("permission") or "none")


async def comments_since(client: Client, github: str, since: float) -> list[IssueComment]:
    """Return comments written or changed since then on any issue or pull request, oldest change first."""
    when = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = f"/repos/{github}/issues/comments?sort=updated&direction=asc&since={when}&per_page={PER_PAGE}"
    return [_read(IssueComment, each) for each in await client.pages(path)]


async def comments_of(client: Client, github: str, number: int, since: float) -> list[IssueComment]:
    """Return comments written or changed since then on one issue or pull request."""
    when = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = f"/repos/{github}/issues/{number}/comments?since={when}&per_page={PER_PAGE}"
    return [_read(IssueComment, each) for each in await client.pages(path)]


async def comment(client: Client, github: str, comment_id: int) -> IssueComment | None:
    """Return a comment's current state; None if it was deleted."""
    try:
        return _read(IssueComment, await client.get(f"/repos/{github}/issues/comments/{comment_id}"))
    except DeclinedError as error:
        if error.status in {404, 410}:
            return None
        raise


async def add_comment(client: Client, github: str, number: int, body: str) -> IssueComment:
    made = await client.send("POST", f"/repos/{github}/issues/{number}/comments", {"body": body})
    return _read(IssueComment, made)


async def edit_comment(client: Client, github: str, comment_id: str, body: str) -> IssueComment:
    made = await client.send("PATCH", f"/repos/{github}/issues/comments/{comment_id}", {"body": body})
    return _read(IssueComment, made)


async def delete_comment(client: Client, github: str, comment_id: int) -> None:
    await client.send("DELETE", f"/repos/{github}/issues/comments/{comment_id}", b"")


async def react(client: Client, github: str, comment_id: str, content: str) -> Reaction:
    """React to a comment. Idempotent."""
    path = f"/repos/{github}/issues/comments/{comment_id}/reactions"
    return _read(Reaction, await client.send("POST", path, {"content": content}))


async def pull(client: Client, github: str, number: int) -> Pull:
    return _read(Pull, await client.get(f"/repos/{github}/pulls/{number}"))


async def open_pulls(client: Client, github: str) -> list[Pull]:
    """Return the open pull requests, latest change first: one page."""
    path = f"/repos/{github}/pulls?state=open&sort=updated&direction=desc&per_page={PER_PAGE}"
    return [_read(Pull, each) for each in await client.pages(path, most=1)]


async def pulls_of(client: Client, github: str, branch: str) -> list[Pull]:
    """Return every pull request, open or closed, for a branch of the repository itself (not of a fork), newest
    first.
    """
    owner = github.partition("/")[0]
    path = f"/repos/{github}/pulls?state=all&per_page={PER_PAGE}&head={{head}}"
    pages = await client.pages(path, most=1, head=f"{owner}:{branch}")
    return [each for each in (_read(Pull, one) for one in pages) if each.head.ref == branch]


async def branch(client: Client, github: str, name: str) -> Branch | None:
    """Return a branch; None if it does not exist."""
    try:
        return _read(Branch, await client.get(f"/repos/{github}/branches/{{+name}}", name=name))
    except DeclinedError as error:
        if error.status == 404:
            return None
        raise


async def open_pull(client: Client, github: str, **fields: Any) -> Pull:
    """Open a pull request: title, body, head, base, draft."""
    return _read(Pull, await client.send("POST", f"/repos/{github}/pulls", fields))


async def change_pull(client: Client, github: str, number: int, **fields: Any) -> Pull:
    return _read(Pull, await client.send("PATCH", f"/repos/{github}/pulls/{number}", fields))


async def mark_ready(client: Client, node_id: str) -> None:
    """Mark a draft pull request as ready for review, by GraphQL: REST has no call for that."""
    query = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
    answer = await client.send("POST", client.graphql_url, {"query": query, "variables": {"id": node_id}})
    if faults := answer.get("errors"):
        raise DeclinedError(422, f"GitHub answers: {str(faults[0].get('message', 'no reason'))[:300]}")


async def merge_queue(client: Client, github: str) -> list[GitRef]:
    """Return the commits that a merge queue wants checked."""
    path = f"/repos/{github}/git/matching-refs/heads/gh-readonly-queue/"
    return [_read(GitRef, each) for each in await client.pages(path)]


async def check_runs(client: Client, github: str, sha: str, name: str) -> list[CheckRun]:
    """Return the check runs of that name on a commit."""
    answer = await client.get(f"/repos/{github}/commits/{sha}/check-runs?check_name={{name}}", name=name)
    return list(_read(CheckRuns, answer).check_runs)


async def add_check(client: Client, github: str, fields: dict[str, Any]) -> CheckRun:
    return _read(CheckRun, await client.send("POST", f"/repos/{github}/check-runs", fields))


async def change_check(client: Client, github: str, check_id: str, fields: dict[str, Any]) -> CheckRun:
    return _read(CheckRun, await client.send("PATCH", f"/repos/{github}/check-runs/{check_id}", fields))


async def set_status(client: Client, github: str, sha: str, fields: dict[str, Any]) -> None:
    """Set a commit status: an account that is no GitHub App may not make check runs."""
    await client.send("POST", f"/repos/{github}/statuses/{sha}", fields)


A = TypeVar("A", bound=GithubAnswer)


def _read(kind: type[A], answer: object) -> A:
    """Parse GitHub's answer; an unknown form counts as GitHub being broken."""
    try:
        return kind.model_validate(answer)
    except ValidationError:
        raise AwayError(f"GitHub sent an unexpected answer, not a {kind.__name__}", status=200) from None
