"""Endpoints of the Hub: issues, their comments, reactions on comments."""

from collections.abc import Callable
from datetime import datetime

from tests.github import shapes
from tests.github.call import ROUTES, Call
from tests.github.router import RefusedError, invalid, not_found, paged
from tests.github.state import ROLES, Comment, Repo, stamp
from tests.github.wire import Json, Reply, Request

LONGEST = 65_536
COMMENT = "/repos/{owner}/{repo}/issues/comments/{number}"


@ROUTES.on("GET", "/repos/{owner}/{repo}/issues/comments")
def of_repository(call: Call, request: Request, owner: str, repo: str) -> Reply:
    repository = call.repo(owner, repo)
    return _listed(request, [_shown(call, repository, each) for each in repository.comments.values()], True)


@ROUTES.on("GET", "/repos/{owner}/{repo}/issues/{number}/comments")
def of_issue(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo)
    issue = call.issue(repository, number)
    listed = [_shown(call, repository, each) for each in repository.comments.values() if each.number == issue.number]
    return _listed(request, listed)


@ROUTES.on("POST", "/repos/{owner}/{repo}/issues/{number}/comments")
def create(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo)
    author, issue = call.viewer, call.issue(repository, number)
    now = call.now
    made = Comment(next(call.world.ids), issue.number, author, body_of(request), now, now)
    repository.comments[made.id] = made
    issue.updated = max(issue.updated, now)
    answer = _shown(call, repository, made)
    return Reply(201, answer, {"Location": answer["url"]})


@ROUTES.on("GET", COMMENT)
def get(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo)
    return Reply(200, _shown(call, repository, _comment(repository, number)))


@ROUTES.on("PATCH", COMMENT)
def edit(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository, comment = _to_change(call, owner, repo, number)
    body = body_of(request)
    if body != comment.body:
        comment.body, comment.updated = body, call.world.after(comment.created)
    return Reply(200, _shown(call, repository, comment))


@ROUTES.on("DELETE", COMMENT)
def delete(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository, comment = _to_change(call, owner, repo, number)
    del repository.comments[comment.id]
    return Reply(204)


@ROUTES.on("POST", COMMENT + "/reactions")
def react(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    comment = _comment(call.repo(owner, repo), number)
    return call.world.reactions.add(comment.id, call.me, request, str(stamp(call.now)))


@ROUTES.on("GET", COMMENT + "/reactions")
def reactions(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    return call.world.reactions.listed(_comment(call.repo(owner, repo), number).id, request)


@ROUTES.on("DELETE", COMMENT + "/reactions/{reaction}")
def take_back(call: Call, request: Request, owner: str, repo: str, number: str, reaction: str) -> Reply:
    return call.world.reactions.remove(_comment(call.repo(owner, repo), number).id, int(reaction))


@ROUTES.on("GET", "/repos/{owner}/{repo}/issues/{number}")
def issue(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo)
    return Reply(200, shapes.issue(call.issue(repository, number), repository, call.base))


def body_of(request: Request) -> str:
    body = request.json().get("body")
    if not isinstance(body, str) or not body.strip():
        raise invalid("IssueComment", "body", "missing_field")
    if len(body) > LONGEST:
        raise invalid("IssueComment", message=f"body is too long (maximum is {LONGEST} characters)")
    return body


def dated(comment: Comment, at: datetime) -> None:
    """Backdate a comment."""
    comment.created = comment.updated = at.replace(microsecond=0)


def _shown(call: Call, repository: Repo, comment: Comment) -> Json:
    return shapes.comment(comment, repository, call.world, call.base)


def _comment(repository: Repo, number: str) -> Comment:
    if not number.isdigit() or int(number) not in repository.comments:
        raise not_found()
    return repository.comments[int(number)]


def _to_change(call: Call, owner: str, repo: str, number: str) -> tuple[Repo, Comment]:
    """Return a comment that the caller may change: its author, or somebody with write permission."""
    repository = call.repo(owner, repo)
    comment = _comment(repository, number)
    if call.viewer.id != comment.user.id and ROLES.index(call.role(repository)) < ROLES.index("write"):
        raise RefusedError(403, "Must have admin rights to Repository.")
    return repository, comment


def _listed(request: Request, comments: list[Json], of_repository: bool = False) -> Reply:
    """Return comments since a time, sorted and paged; those of one issue have a fixed order."""
    since = request.query.get("since", "")
    listed = sorted((each for each in comments if each["updated_at"] >= since), key=lambda comment: int(comment["id"]))
    sort = request.query.get("sort")
    if of_repository and sort in ("created", "updated"):
        key: Callable[[Json], tuple[str, int]] = lambda comment: (comment[f"{sort}_at"], comment["id"])  # noqa: E731
        listed.sort(key=key, reverse=request.query.get("direction", "desc") != "asc")
    return paged(request, listed)
