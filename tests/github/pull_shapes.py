"""Pull requests and check runs as GitHub's JSON, and the rule of required checks."""

from tests.github.shapes import HTML, _thread, app, association, repo, repo_url, user
from tests.github.state import App, CheckRun, Issue, Pull, Repo, node_id, stamp
from tests.github.wire import Json

PASSED = ("success", "neutral", "skipped")


def unmet(repository: Repo, pull: Pull) -> list[str]:
    """Return the required checks of the base branch that have not succeeded on the head."""
    passing: dict[str, bool] = {
        name: status["state"] == "success" for name, status in repository.statuses.latest(pull.sha).items()
    }
    for run in repository.checks.values():
        if run.sha == pull.sha:
            passing[run.data["name"]] = run.data["conclusion"] in PASSED
    return [name for name in repository.protected.get(pull.base, []) if not passing.get(name)]


def pull_request(of: Issue, repository: Repo, base: str, whole: bool = False) -> Json:
    assert of.pull is not None
    pull, url = of.pull, f"{repo_url(repository, base)}/pulls/{of.number}"
    html = f"{HTML}/{repository.full_name}/pull/{of.number}"
    issue_url = f"{repo_url(repository, base)}/issues/{of.number}"
    statuses_url = f"{repo_url(repository, base)}/statuses/{pull.sha}"
    links = {
        "self": url,
        "html": html,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{repo_url(repository, base)}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": statuses_url,
    }
    return {
        "url": url,
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue_url,
        **{
            f"{name}_url": links[name]
            for name in ("commits", "review_comments", "review_comment", "comments", "statuses")
        },
        **_thread(of, base, "PR"),
        "merged_at": stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_sha,
        "requested_reviewers": [],
        "requested_teams": [],
        "head": _side(repository, pull.head, pull.sha, base),
        "base": _side(repository, pull.base, pull.base_sha, base),
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": association(of.user, repository),
        "auto_merge": None,
        "draft": pull.draft,
        **(_details(repository, pull, base) if whole else {}),
    }


def _details(repository: Repo, pull: Pull, base: str) -> Json:
    """Return the fields that only the pull request itself shows, not a list."""
    state = "draft" if pull.draft else "blocked" if unmet(repository, pull) else "clean"
    return {
        "merged": pull.merged_at is not None,
        "mergeable": True,
        "rebaseable": True,
        "mergeable_state": state,
        "merged_by": user(repository.owner, base) if pull.merged_at else None,
        "maintainer_can_modify": False,
        **dict.fromkeys(("comments", "review_comments", "deletions"), 0),
        **dict.fromkeys(("commits", "additions", "changed_files"), 1),
    }


def _side(repository: Repo, branch: str, sha: str, base: str) -> Json:
    owner = repository.owner
    about = {"user": user(owner, base), "repo": repo(repository, base, "read")}
    return {"label": f"{owner.login}:{branch}", "ref": branch, "sha": sha, **about}


def check_run(of: CheckRun, repository: Repo, base: str, by: App) -> Json:
    url = f"{repo_url(repository, base)}/check-runs/{of.id}"
    html = f"{HTML}/{repository.full_name}/runs/{of.id}"
    output = of.data.get("output") or {}
    shown = {name: output.get(name) for name in ("title", "summary", "text")}
    notes = {"annotations_count": len(of.annotations), "annotations_url": f"{url}/annotations"}
    return {
        "id": of.id,
        "node_id": node_id("CR", of.id),
        "head_sha": of.sha,
        "external_id": of.data.get("external_id") or "",
        "url": url,
        "html_url": html,
        "details_url": of.data.get("details_url") or html,
        **{name: of.data.get(name) for name in ("status", "conclusion", "started_at", "completed_at", "name")},
        "output": {**shown, **notes},
        "check_suite": {"id": of.id + 1},
        "app": app(by, base),
        "pull_requests": [],
    }


def reference(repository: Repo, branch: str, base: str) -> Json:
    sha = repository.branches[branch]
    name = f"refs/heads/{branch}"
    target = {"type": "commit", "sha": sha, "url": f"{repo_url(repository, base)}/git/commits/{sha}"}
    return {
        "ref": name,
        "node_id": f"REF_{branch}",
        "url": f"{repo_url(repository, base)}/git/{name}",
        "object": target,
    }


def commit(repository: Repo, sha: str, base: str) -> Json:
    url, owner = repo_url(repository, base), repository.owner
    person = {"name": owner.login, "email": f"{owner.login}@example.com", "date": stamp(repository.created)}
    unsigned = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
    return {
        "sha": sha,
        "node_id": f"C_{sha}",
        "url": f"{url}/commits/{sha}",
        "html_url": f"{HTML}/{repository.full_name}/commit/{sha}",
        "comments_url": f"{url}/commits/{sha}/comments",
        "commit": {
            "author": person,
            "committer": person,
            "message": "A change",
            "tree": {"sha": sha, "url": f"{url}/git/trees/{sha}"},
            "url": f"{url}/git/commits/{sha}",
            "comment_count": 0,
            "verification": unsigned,
        },
        "author": user(owner, base),
        "committer": user(owner, base),
        "parents": [],
    }
