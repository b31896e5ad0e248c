"""Endpoints of the Hub: pull requests, branches and their protection, and the one operation that needs GraphQL."""

import hashlib
import re
from typing import Any

from tests.github.call import ROUTES, Call
from tests.github.pull_shapes import commit, pull_request, reference, unmet
from tests.github.router import RefusedError, invalid, not_found, paged
from tests.github.shapes import HTML, repo_url
from tests.github.state import Issue, Pull, Repo, node_id
from tests.github.wire import Json, Reply, Request


@ROUTES.on("GET", "/repos/{owner}/{repo}/pulls")
def listed(call: Call, request: Request, owner: str, repo: str) -> Reply:
    repository, query = call.repo(owner, repo), request.query
    pulls = [each for each in repository.issues.values() if each.pull]
    state, head, base = query.get("state", "open"), query.get("head"), query.get("base")
    wanted = [
        pull
        for pull in sorted(pulls, key=lambda pull: pull.number, reverse=query.get("direction", "desc") == "desc")
        if pull.pull and state in ("all", pull.state) and base in (None, pull.pull.base)
        # a head without OWNER: is ignored, as with GitHub: everything is returned
        if head is None or ":" not in head or head == f"{repository.owner.login}:{pull.pull.head}"
    ]
    return paged(request, [pull_request(each, repository, call.base) for each in wanted])


@ROUTES.on("POST", "/repos/{owner}/{repo}/pulls")
def create(call: Call, request: Request, owner: str, repo: str) -> Reply:
    repository = call.repo(owner, repo, "write")
    asked = request.json()
    for name in ("title", "head", "base"):
        if not asked.get(name):
            raise invalid("PullRequest", name, "missing_field")
    head, base = str(asked["head"]).removeprefix(f"{owner}:"), str(asked["base"])
    for name, branch in (("head", head), ("base", base)):
        if branch not in repository.branches:
            raise invalid("PullRequest", name)
    if repository.branches[head] == repository.branches[base]:
        raise invalid("PullRequest", message=f"No commits between {base} and {head}")
    if any(_same(each, head, base) for each in repository.issues.values()):
        raise invalid("PullRequest", message=f"A pull request already exists for {owner}:{head}.")
    now = call.now
    pull = Pull(head, base, repository.branches[head], repository.branches[base], bool(asked.get("draft")))
    number = max(repository.issues, default=0) + 1
    made = Issue(next(call.world.ids), number, call.viewer, asked["title"], asked.get("body"), now, now, pull=pull)
    repository.issues[number] = made
    return Reply(201, pull_request(made, repository, call.base, whole=True))


def _same(issue: Issue, head: str, base: str) -> bool:
    return (
        bool(issue.pull)
        and issue.state == "open"
        and (issue.pull and (issue.pull.head, issue.pull.base)) == (head, base)
    )


@ROUTES.on("GET", "/repos/{owner}/{repo}/pulls/{number}")
def get(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo)
    return Reply(200, pull_request(_pull(call, repository, number), repository, call.base, whole=True))


@ROUTES.on("PATCH", "/repos/{owner}/{repo}/pulls/{number}")
def patch(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    """Change a pull request; as on GitHub, `draft` cannot be changed here."""
    repository = call.repo(owner, repo, "write")
    issue, asked = _pull(call, repository, number), request.json()
    issue.title, issue.body = asked.get("title", issue.title), asked.get("body", issue.body)
    state = asked.get("state", issue.state)
    if state not in ("open", "closed"):
        raise invalid("PullRequest", "state")
    if state != issue.state:
        issue.state, issue.closed_at = state, call.now if state == "closed" else None
    issue.updated = call.now
    return Reply(200, pull_request(issue, repository, call.base, whole=True))


@ROUTES.on("PUT", "/repos/{owner}/{repo}/pulls/{number}/merge")
def merge(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo, "write")
    issue, asked = _pull(call, repository, number), request.json()
    pull = issue.pull
    assert pull is not None
    if asked.get("sha") not in (None, pull.sha):
        raise RefusedError(409, "Head branch was modified. Review and try the merge again.")
    if issue.state != "open":
        raise RefusedError(405, "Pull Request is not mergeable")
    if pull.draft:
        raise RefusedError(405, "Pull Request is still a draft")
    if missing := unmet(repository, pull):
        raise RefusedError(405, f'Required status check "{missing[0]}" is expected.')
    pull.merge_sha = hashlib.sha1(f"{pull.base_sha}{pull.sha}".encode()).hexdigest()
    pull.merged_at = issue.closed_at = issue.updated = call.now
    issue.state = "closed"
    repository.branches[pull.base] = pull.merge_sha
    repository.commits.add(pull.merge_sha)
    return Reply(200, {"sha": pull.merge_sha, "merged": True, "message": "Pull Request successfully merged"})


@ROUTES.on("GET", "/repos/{owner}/{repo}/git/ref/heads/{branch...}")
def ref(call: Call, request: Request, owner: str, repo: str, branch: str) -> Reply:
    repository = call.repo(owner, repo)
    if branch not in repository.branches:
        raise not_found()
    return Reply(200, reference(repository, branch, call.base))


@ROUTES.on("GET", "/repos/{owner}/{repo}/git/matching-refs/heads/{prefix...}")
def refs(call: Call, request: Request, owner: str, repo: str, prefix: str) -> Reply:
    repository = call.repo(owner, repo)
    names = sorted(each for each in repository.branches if each.startswith(prefix))
    return paged(request, [reference(repository, each, call.base) for each in names])


@ROUTES.on("GET", "/repos/{owner}/{repo}/branches/{branch...}/protection")
def protection(call: Call, request: Request, owner: str, repo: str, branch: str) -> Reply:
    repository = call.repo(owner, repo, "admin")
    if branch not in repository.protected:
        raise RefusedError(404, "Branch not protected")
    url = f"{repo_url(repository, call.base)}/branches/{branch}/protection"
    enabled = {f"{name}": {"enabled": False} for name in ("allow_force_pushes", "allow_deletions")}
    admins = {"url": f"{url}/enforce_admins", "enabled": False}
    return Reply(200, {"url": url, **_required(repository, branch, url), "enforce_admins": admins, **enabled})


@ROUTES.on("GET", "/repos/{owner}/{repo}/branches/{branch...}")
def branch(call: Call, request: Request, owner: str, repo: str, branch: str) -> Reply:
    """Return a branch. Unlike the protection itself, every reader sees whether it is protected."""
    repository = call.repo(owner, repo)
    if branch not in repository.branches:
        raise RefusedError(404, "Branch not found")
    url = repo_url(repository, call.base)
    protected = branch in repository.protected
    required = _required(repository, branch, f"{url}/branches/{branch}/protection") if protected else {}
    return Reply(
        200,
        {
            "name": branch,
            "commit": commit(repository, repository.branches[branch], call.base),
            "_links": {"self": f"{url}/branches/{branch}", "html": f"{HTML}/{repository.full_name}/tree/{branch}"},
            "protected": protected,
            "protection": {"enabled": protected, **required},
            "protection_url": f"{url}/branches/{branch}/protection",
        },
    )


def _required(repository: Repo, branch: str, url: str) -> Json:
    names = repository.protected[branch]
    checks = [{"context": name, "app_id": None} for name in names]
    at = f"{url}/required_status_checks"
    answer = {"url": at, "strict": False, "contexts": names, "contexts_url": f"{at}/contexts", "checks": checks}
    return {"required_status_checks": {**answer, "enforcement_level": "non_admins"}}


@ROUTES.on("POST", "/graphql")
def graphql(call: Call, request: Request) -> Reply:
    """Run `markPullRequestReadyForReview` or its opposite; the node may be in the query or in the variables."""
    asked = request.json()
    mutation = re.search(r"\b(markPullRequestReadyForReview|convertPullRequestToDraft)\b", str(asked.get("query")))
    wanted = words_of([asked.get("query", ""), asked.get("variables")])
    if mutation is None:
        return Reply(200, {"errors": [{"message": "The Hub of the tests knows nothing of this query"}]})
    for repository in call.world.repos.values():
        for issue in repository.issues.values():
            if issue.pull and node_id("PR", issue.id) in wanted:
                call.repo(repository.owner.login, repository.name, "write")
                issue.pull.draft = mutation[1] == "convertPullRequestToDraft"
                return Reply(200, ready(mutation[1], node_id("PR", issue.id), issue.number, issue.pull.draft))
    return Reply(200, no_node(mutation[1]))


def ready(mutation: str, node: str, number: int, draft: bool) -> Json:
    answer = {"id": node, "number": number, "isDraft": draft}
    return {"data": {mutation: {"pullRequest": answer, "clientMutationId": None}}}


def no_node(mutation: str) -> Json:
    message = "Could not resolve to a node with the global id."
    return {"data": {mutation: None}, "errors": [{"type": "NOT_FOUND", "path": [mutation], "message": message}]}


def words_of(value: Any) -> set[str]:
    """Return all words of a query and its variables."""
    if isinstance(value, dict):
        return words_of(list(value.values()))
    if isinstance(value, list):
        return {each for part in value for each in words_of(part)}
    return set(re.findall(r"[\w=-]+", value)) if isinstance(value, str) else set()


def _pull(call: Call, repository: Repo, number: str) -> Issue:
    issue = call.issue(repository, number)
    if issue.pull is None:
        raise not_found()
    return issue
