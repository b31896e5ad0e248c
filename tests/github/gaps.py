"""Corrections of the emulator, where it lacks something or differs from GitHub, in the proxy, mostly with the Hub's
code.

Each docstring here names the reply of the emulator (0.12.2) that is replaced.
"""

import json
import re
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.github.check_runs import check_output
from tests.github.marks import Reactions, Statuses, comments_listed
from tests.github.people import permission_of
from tests.github.pulls import no_node, ready, words_of
from tests.github.router import RefusedError, Router, invalid, paged
from tests.github.shapes import user
from tests.github.state import User, stamp
from tests.github.wire import Json, Reply, Request

Ask = Callable[[Request], Reply]
GAPS: "Router[Gaps]" = Router()
REPO = "/repos/{owner}/{repo}"
COMMENT = REPO + "/issues/comments/{number}"
MILLISECONDS = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z$")
ROLE_OF = {"pull": "read", "push": "write"}


@dataclass
class Gaps:
    ask: Ask
    """Asks the emulator."""
    repositories: Callable[[], list[str]]
    role_without: Callable[[str, str], str]
    """The permission of people who are no collaborators of a repository: read or none."""
    bot_of: Callable[[str], str]
    """The bot that a credential belongs to, if it is the token of an App's installation."""
    reactions: Reactions = field(default_factory=Reactions)
    statuses: Statuses = field(default_factory=Statuses)
    edited: set[int] = field(default_factory=set)
    """The comments that were."""

    def got(self, request: Request, path: str, **query: str) -> Any:
        """Fetch something else that the answer needs, as the caller."""
        reply = self.ask(replace(request, method="GET", path=path, query=query, body=b""))
        if reply.status != 200:
            raise RefusedError(reply.status, str((reply.body or {}).get("message")))
        return reply.body

    def everything(self, request: Request, path: str) -> list[Json]:
        found: list[Json] = []
        while page := self.got(request, path, per_page="100", page=str(len(found) // 100 + 1), state="all"):
            found += page
            if len(page) < 100:
                break
        return found

    def me(self, request: Request) -> Json:
        """Return the caller."""
        bot = self.bot_of(request.credential)
        if bot:  # a bot has no `GET /user`
            return user(User(161_803_398, bot, "Bot"), f"http://{request.headers['host']}")
        return dict(self.got(request, "/user"))


def now() -> str:
    return str(stamp(datetime.now(UTC)))


def as_github_writes(value: Any, edited: Set[int]) -> Any:
    """Correct dates, where the emulator has milliseconds and two different ones for a new comment; and addresses."""
    if isinstance(value, list):
        return [as_github_writes(each, edited) for each in value]
    if not isinstance(value, dict):
        return _text(value) if isinstance(value, str) else value
    found = {name: as_github_writes(each, edited) for name, each in value.items()}
    if "issue_url" in found and "head" not in found:
        later = str(stamp(datetime.fromisoformat(found["created_at"]) + timedelta(seconds=1)))
        found["updated_at"] = max(found["updated_at"], later) if found["id"] in edited else found["created_at"]
    return found


def _text(value: str) -> str:
    """Escape the brackets of a bot's name in addresses, which the emulator does not."""
    if value.startswith("http"):
        return value.replace("[bot]", "%5Bbot%5D")
    return MILLISECONDS.sub(r"\1Z", value)


@GAPS.on("GET", REPO + "/issues/comments")
def of_repository(gaps: Gaps, request: Request, owner: str, repo: str) -> Reply:
    """The emulator: 404."""
    base = f"/repos/{owner}/{repo}"
    numbers = [each["number"] for kind in ("issues", "pulls") for each in gaps.everything(request, f"{base}/{kind}")]
    lists = [gaps.everything(request, f"{base}/issues/{number}/comments") for number in sorted(set(numbers))]
    return comments_listed(request, [each for found in lists for each in found], True)


@GAPS.on("GET", REPO + "/issues/{number}")
def issue(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    """The emulator: 404 where the issue is a pull request."""
    found = gaps.ask(request)
    if found.status != 404:
        return found
    base = f"/repos/{owner}/{repo}"
    pull = gaps.got(request, f"{base}/pulls/{number}")
    here = f"http://{request.headers['host']}{base}"
    url = f"{here}/issues/{number}"
    kept = (
        "user",
        "node_id",
        "number",
        "state",
        "locked",
        "title",
        "body",
        "labels",
        "assignee",
        "assignees",
        "milestone",
    )
    more = (
        "created_at",
        "updated_at",
        "closed_at",
        "active_lock_reason",
        "author_association",
        "html_url",
        "id",
        "draft",
    )
    links = {name: pull.get(name) for name in ("url", "html_url", "diff_url", "patch_url", "merged_at")}
    urls = {"url": url, "repository_url": here, "labels_url": f"{url}/labels{{/name}}"}
    counted = {"comments": pull.get("comments", 0), "comments_url": f"{url}/comments", "events_url": f"{url}/events"}
    return Reply(200, {**{name: pull.get(name) for name in (*kept, *more)}, **urls, **counted, "pull_request": links})


@GAPS.on("GET", REPO + "/collaborators/{login}/permission")
def permission(gaps: Gaps, request: Request, owner: str, repo: str, login: str) -> Reply:
    """Answer like GitHub; the emulator has 404 for a stranger, and `push` and `pull` for `write` and `read`."""
    mine = f"/repos/{owner}/{repo}/collaborators/{gaps.me(request)['login']}/permission"
    own = gaps.ask(replace(request, path=mine)).body.get("role_name", "read")
    if own in ("read", "pull", "triage") and not gaps.bot_of(request.credential):
        raise RefusedError(403, "Must have push access to view collaborator permission.")
    found = gaps.ask(request)
    if found.status == 200:
        role = ROLE_OF.get(found.body["role_name"], found.body["role_name"])
        return Reply(200, permission_of(role, found.body["user"]))
    person = gaps.got(request, f"/users/{login}")
    return Reply(200, permission_of(gaps.role_without(f"{owner}/{repo}", login), person))


@GAPS.on("PATCH", COMMENT)
def edit(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    """Remember an edit, since the emulator's dates do not show it."""
    before = gaps.got(request, request.path)["body"]
    if before != request.json().get("body"):
        gaps.edited.add(int(number))
    return gaps.ask(request)


@GAPS.on("POST", COMMENT + "/reactions")
def react(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    """The emulator has no reactions."""
    gaps.got(request, f"/repos/{owner}/{repo}/issues/comments/{number}")
    return gaps.reactions.add(int(number), gaps.me(request), request, now())


@GAPS.on("GET", COMMENT + "/reactions")
def reactions(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    gaps.got(request, f"/repos/{owner}/{repo}/issues/comments/{number}")
    return gaps.reactions.listed(int(number), request)


@GAPS.on("DELETE", COMMENT + "/reactions/{reaction}")
def take_back(gaps: Gaps, request: Request, owner: str, repo: str, number: str, reaction: str) -> Reply:
    return gaps.reactions.remove(int(number), int(reaction))


@GAPS.on("POST", REPO + "/statuses/{sha}")
def status(gaps: Gaps, request: Request, owner: str, repo: str, sha: str) -> Reply:
    """The emulator has no statuses. A required one counts for a merge, so the emulator gets a check run of that
    name.
    """
    asked = request.json()
    base = f"/repos/{owner}/{repo}"
    url = f"http://{request.headers['host']}{base}"
    made = gaps.statuses.add(sha, url, gaps.me(request), request, now())
    conclusion = "success" if asked["state"] == "success" else "failure"
    ended = {} if asked["state"] == "pending" else {"status": "completed", "conclusion": conclusion}
    run = {"name": made.body["context"], "head_sha": sha, "external_id": "status", **ended}
    gaps.ask(replace(request, path=f"{base}/check-runs", body=json.dumps(run).encode()))
    return made


@GAPS.on("GET", REPO + "/commits/{ref...}/statuses")
def statuses(gaps: Gaps, request: Request, owner: str, repo: str, ref: str) -> Reply:
    return paged(request, gaps.statuses.of.get(_sha(gaps, request, owner, repo, ref), []))


@GAPS.on("GET", REPO + "/commits/{ref...}/status")
def combined(gaps: Gaps, request: Request, owner: str, repo: str, ref: str) -> Reply:
    sha, base = _sha(gaps, request, owner, repo, ref), f"/repos/{owner}/{repo}"
    return gaps.statuses.combined(sha, f"http://{request.headers['host']}{base}", gaps.got(request, base))


@GAPS.on("GET", REPO + "/commits/{ref...}/check-runs")
def check_runs(gaps: Gaps, request: Request, owner: str, repo: str, ref: str) -> Reply:
    """Leave out check runs that represent statuses."""
    found = gaps.ask(request)
    if found.status == 200:
        runs = [each for each in found.body["check_runs"] if each["external_id"] != "status"]
        found.body = {"total_count": len(runs), "check_runs": runs}
    return found


@GAPS.on("GET", REPO + "/check-runs/{number}/annotations")
def annotations(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    """The emulator: a list inside an object."""
    return paged(request, gaps.got(request, request.path, per_page="100")["check_annotations"])


@GAPS.on("POST", REPO + "/check-runs")
def make_check_run(gaps: Gaps, request: Request, owner: str, repo: str) -> Reply:
    """The emulator: anybody may, with any number of annotations."""
    return _checked_run(gaps, request)


@GAPS.on("PATCH", REPO + "/check-runs/{number}")
def change_check_run(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    return _checked_run(gaps, request)


def _checked_run(gaps: Gaps, request: Request) -> Reply:
    if not gaps.bot_of(request.credential):
        raise RefusedError(403, "You must authenticate via a GitHub App.")
    check_output(request.json())
    return gaps.ask(request)


@GAPS.on("POST", REPO + "/pulls")
def make_pull(gaps: Gaps, request: Request, owner: str, repo: str) -> Reply:
    """The emulator: any number with one head and base."""
    asked = request.json()
    head = str(asked.get("head")).removeprefix(f"{owner}:")
    found = gaps.got(request, f"/repos/{owner}/{repo}/pulls", state="open", per_page="100")
    if any((each["head"]["ref"], each["base"]["ref"]) == (head, asked.get("base")) for each in found):
        raise invalid("PullRequest", message=f"A pull request already exists for {owner}:{head}.")
    return gaps.ask(request)


@GAPS.on("PATCH", REPO + "/pulls/{number}")
def change_pull(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    """The emulator: a draft may be made ready here."""
    asked = {name: value for name, value in request.json().items() if name != "draft"}
    return gaps.ask(replace(request, body=json.dumps(asked).encode()))


@GAPS.on("PUT", REPO + "/pulls/{number}/merge")
def merge(gaps: Gaps, request: Request, owner: str, repo: str, number: str) -> Reply:
    """The emulator: 422 where GitHub has 405, and for a head that has moved, 409."""
    wanted = request.json().get("sha")
    if wanted and wanted != gaps.got(request, f"/repos/{owner}/{repo}/pulls/{number}")["head"]["sha"]:
        raise RefusedError(409, "Head branch was modified. Review and try the merge again.")
    reply = gaps.ask(request)
    if reply.status == 422 and "status checks" in reply.body.get("message", ""):
        raise RefusedError(405, "Required status check is expected.")
    return reply


@GAPS.on("POST", "/graphql")
def graphql(gaps: Gaps, request: Request) -> Reply:
    """The emulator has no GraphQL."""
    asked = request.json()
    found = re.search(r"\b(markPullRequestReadyForReview|convertPullRequestToDraft)\b", str(asked.get("query")))
    if found is None:
        return Reply(200, {"errors": [{"message": "The proxy of the tests knows nothing of this query"}]})
    wanted, draft = words_of([asked.get("query", ""), asked.get("variables")]), found[1].endswith("Draft")
    for name in gaps.repositories():
        for pull in gaps.everything(request, f"/repos/{name}/pulls"):
            if pull["node_id"] in wanted:
                path, body = f"/repos/{name}/pulls/{pull['number']}", json.dumps({"draft": draft}).encode()
                done = gaps.ask(replace(request, method="PATCH", path=path, body=body))
                if done.status == 200:
                    return Reply(200, ready(found[1], pull["node_id"], pull["number"], draft))
    return Reply(200, no_node(found[1]))


def _sha(gaps: Gaps, request: Request, owner: str, repo: str, ref: str) -> str:
    if re.fullmatch("[0-9a-f]{40}", ref):
        return ref
    branch = ref.removeprefix("heads/")
    return str(gaps.got(request, f"/repos/{owner}/{repo}/git/ref/heads/{branch}")["object"]["sha"])
