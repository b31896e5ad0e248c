"""Users, repositories, issues and pull requests as GitHub's JSON. Unused fields are included if GitHub's description
requires them.
"""

from urllib.parse import quote

from tests.github.state import App, Comment, Issue, Repo, User, World, node_id, stamp
from tests.github.wire import Json

HTML = "https://github.com"
USER_URLS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
REPO_URLS = {
    **{f"{name}_url": f"/{name}" for name in ("contributors", "deployments", "downloads", "events", "forks", "hooks")},
    **{
        f"{name}_url": f"/{name}"
        for name in ("languages", "merges", "stargazers", "subscribers", "subscription", "tags", "teams")
    },
    **{f"{name}_url": f"/{name}{{/sha}}" for name in ("commits",)},
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "statuses_url": "/statuses/{sha}",
    "trees_url": "/git/trees{/sha}",
}
NO_REACTIONS = dict.fromkeys(("total_count", "+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"), 0)


def user(of: User, base: str) -> Json:
    url = f"{base}/users/{quote(of.login)}"
    return {
        "login": of.login,
        "id": of.id,
        "node_id": node_id("U", of.id),
        "avatar_url": f"https://avatars.githubusercontent.com/u/{of.id}?v=4",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{HTML}/{'apps/' + of.login.removesuffix('[bot]') if of.type == 'Bot' else of.login}",
        **{name: url + rest for name, rest in USER_URLS.items()},
        "type": of.type,
        "site_admin": False,
    }


def myself(of: User, base: str) -> Json:
    """Return the answer of `GET /user`."""
    names = ("name", "company", "location", "email", "hireable", "bio", "twitter_username")
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    dates = dict.fromkeys(("created_at", "updated_at"), "2020-01-01T00:00:00Z")
    return {**user(of, base), **dict.fromkeys(names), "blog": "", **counts, **dates}


def repo_url(of: Repo, base: str) -> str:
    return f"{base}/repos/{of.full_name}"


def short_repo(of: Repo, base: str) -> Json:
    """Return a repository as it appears inside other objects."""
    url = repo_url(of, base)
    return {
        "id": of.id,
        "node_id": node_id("R", of.id),
        "name": of.name,
        "full_name": of.full_name,
        "private": of.private,
        "owner": user(of.owner, base),
        "html_url": f"{HTML}/{of.full_name}",
        "description": None,
        "fork": False,
        "url": url,
        **{name: url + rest for name, rest in REPO_URLS.items()},
    }


def repo(of: Repo, base: str, role: str) -> Json:
    rank = ("read", "triage", "write", "maintain", "admin")
    may = rank.index(role) if role in rank else -1
    named = zip(("pull", "triage", "push", "maintain", "admin"), range(5), strict=True)
    when = stamp(of.created)
    counts = ("forks", "stargazers", "watchers", "open_issues")
    has = dict.fromkeys(("issues", "projects", "wiki", "downloads"), True) | {"pages": False, "discussions": False}
    return {
        **short_repo(of, base),
        "git_url": f"git://github.com/{of.full_name}.git",
        "ssh_url": f"git@github.com:{of.full_name}.git",
        "clone_url": f"{HTML}/{of.full_name}.git",
        "svn_url": f"{HTML}/{of.full_name}",
        **dict.fromkeys(("homepage", "language", "mirror_url", "license")),
        **{f"{name}_count": 0 for name in counts},
        **dict.fromkeys(("forks", "watchers", "open_issues", "size"), 0),
        **{f"has_{name}": value for name, value in has.items()},
        "default_branch": of.default_branch,
        **dict.fromkeys(("archived", "disabled", "is_template", "web_commit_signoff_required"), False),
        "allow_forking": True,
        "topics": [],
        "custom_properties": {},
        "visibility": "private" if of.private else "public",
        **dict.fromkeys(("created_at", "updated_at", "pushed_at"), when),
        "permissions": {name: place <= may for name, place in named},
    }


def comment(of: Comment, repository: Repo, world: World, base: str) -> Json:
    url = f"{repo_url(repository, base)}/issues/comments/{of.id}"
    kind = "pull" if repository.issues[of.number].pull else "issues"
    return {
        "url": url,
        "html_url": f"{HTML}/{repository.full_name}/{kind}/{of.number}#issuecomment-{of.id}",
        "issue_url": f"{repo_url(repository, base)}/issues/{of.number}",
        "id": of.id,
        "node_id": node_id("IC", of.id),
        "user": user(of.user, base),
        "created_at": stamp(of.created),
        "updated_at": stamp(of.updated),
        "body": of.body,
        "author_association": association(of.user, repository),
        "reactions": world.reactions.summary(of.id, url),
        "performed_via_github_app": None,
    }


def association(of: User, repository: Repo) -> str:
    if of.login == repository.owner.login:
        return "OWNER"
    return "COLLABORATOR" if of.login.lower() in repository.roles else "NONE"


def issue(of: Issue, repository: Repo, base: str) -> Json:
    url = f"{repo_url(repository, base)}/issues/{of.number}"
    pulls = f"{repo_url(repository, base)}/pulls/{of.number}"
    html = f"{HTML}/{repository.full_name}/{'pull' if of.pull else 'issues'}/{of.number}"
    merged = of.pull.merged_at if of.pull else None
    links = {"url": pulls, "html_url": html, "diff_url": f"{html}.diff", "patch_url": f"{html}.patch"}
    return {
        "url": url,
        "repository_url": repo_url(repository, base),
        "labels_url": f"{url}/labels{{/name}}",
        **{f"{name}_url": f"{url}/{name}" for name in ("comments", "events")},
        "html_url": html,
        **_thread(of, base, "PR" if of.pull else "I"),
        "comments": sum(each.number == of.number for each in repository.comments.values()),
        "author_association": association(of.user, repository),
        "reactions": {"url": f"{url}/reactions", **NO_REACTIONS},
        "state_reason": None,
        **({"pull_request": {**links, "merged_at": stamp(merged)}, "draft": of.pull.draft} if of.pull else {}),
    }


def _thread(of: Issue, base: str, kind: str) -> Json:
    """Return the common fields of issues and pull requests."""
    return {
        "id": of.id,
        "node_id": node_id(kind, of.id),
        "number": of.number,
        "state": of.state,
        "locked": False,
        "title": of.title,
        "user": user(of.user, base),
        "body": of.body,
        "labels": [],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "created_at": stamp(of.created),
        "updated_at": stamp(of.updated),
        "closed_at": stamp(of.closed_at),
        "active_lock_reason": None,
    }


def app(of: App, base: str) -> Json:
    return {
        "id": of.id,
        "slug": of.slug,
        "node_id": node_id("A", of.id),
        "owner": user(of.owner, base),
        "name": of.slug,
        "description": "",
        "external_url": "https://example.com",
        "html_url": f"{HTML}/apps/{of.slug}",
        **dict.fromkeys(("created_at", "updated_at"), stamp(of.created)),
        "permissions": {"checks": "write", "contents": "write", "issues": "write", "pull_requests": "write"},
        "events": ["issue_comment", "pull_request"],
    }
