"""Endpoints of the Hub: check runs, which only a GitHub App may write, and commit statuses."""

from tests.github import shapes
from tests.github.call import ROUTES, Call
from tests.github.pull_shapes import check_run
from tests.github.router import RefusedError, invalid, not_found, paged
from tests.github.state import CheckRun, Repo, stamp
from tests.github.wire import Json, Reply, Request

MOST = 50
"""Annotations of one call."""
CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out")
NEEDED = ("path", "start_line", "end_line", "annotation_level", "message")


@ROUTES.on("POST", "/repos/{owner}/{repo}/check-runs")
def create(call: Call, request: Request, owner: str, repo: str) -> Reply:
    repository = call.repo(owner, repo)
    by, asked = call.by_app, request.json()
    if not asked.get("name") or not asked.get("head_sha"):
        raise invalid("CheckRun", "name" if not asked.get("name") else "head_sha", "missing_field")
    if asked["head_sha"] not in repository.commits:
        raise RefusedError(422, f"No commit found for SHA: {asked['head_sha']}")
    started = {"status": "queued", "conclusion": None, "started_at": stamp(call.now), "completed_at": None}
    run = CheckRun(next(call.world.ids), asked["head_sha"], started)
    _change(call, run, asked)
    repository.checks[run.id] = run
    return Reply(201, check_run(run, repository, call.base, by))


@ROUTES.on("PATCH", "/repos/{owner}/{repo}/check-runs/{number}")
def update(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo)
    by, run = call.by_app, _run(repository, number)
    _change(call, run, request.json())
    return Reply(200, check_run(run, repository, call.base, by))


@ROUTES.on("GET", "/repos/{owner}/{repo}/check-runs/{number}")
def get(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    repository = call.repo(owner, repo)
    return Reply(200, _shown(call, repository, _run(repository, number)))


@ROUTES.on("GET", "/repos/{owner}/{repo}/check-runs/{number}/annotations")
def annotations(call: Call, request: Request, owner: str, repo: str, number: str) -> Reply:
    return paged(request, _run(call.repo(owner, repo), number).annotations)


@ROUTES.on("GET", "/repos/{owner}/{repo}/commits/{ref...}/check-runs")
def of_commit(call: Call, request: Request, owner: str, repo: str, ref: str) -> Reply:
    repository, query = call.repo(owner, repo), request.query
    sha = _sha(repository, ref)
    check_runs = [
        run
        for run in sorted(repository.checks.values(), key=lambda run: run.id, reverse=True)
        if run.sha == sha
        if query.get("check_name") in (None, run.data["name"])
        if query.get("status") in (None, run.data["status"])
    ]
    if query.get("filter", "latest") == "latest":
        names = [each.data["name"] for each in check_runs]
        check_runs = [each for place, each in enumerate(check_runs) if each.data["name"] not in names[:place]]
    shown = [_shown(call, repository, each) for each in check_runs]
    return paged(request, shown, lambda page: {"total_count": len(shown), "check_runs": page})


@ROUTES.on("POST", "/repos/{owner}/{repo}/statuses/{sha}")
def status(call: Call, request: Request, owner: str, repo: str, sha: str) -> Reply:
    repository = call.repo(owner, repo, "write")
    if sha not in repository.commits:
        raise RefusedError(422, f"No commit found for SHA: {sha}")
    url = shapes.repo_url(repository, call.base)
    return repository.statuses.add(sha, url, call.me, request, str(stamp(call.now)))


@ROUTES.on("GET", "/repos/{owner}/{repo}/commits/{ref...}/statuses")
def statuses(call: Call, request: Request, owner: str, repo: str, ref: str) -> Reply:
    repository = call.repo(owner, repo)
    return paged(request, repository.statuses.of.get(_sha(repository, ref), []))


@ROUTES.on("GET", "/repos/{owner}/{repo}/commits/{ref...}/status")
def combined(call: Call, request: Request, owner: str, repo: str, ref: str) -> Reply:
    repository = call.repo(owner, repo)
    short = shapes.short_repo(repository, call.base)
    return repository.statuses.combined(_sha(repository, ref), shapes.repo_url(repository, call.base), short)


def _change(call: Call, run: CheckRun, asked: Json) -> None:
    """Apply a change: a conclusion completes the run; annotations are appended."""
    check_output(asked)
    if asked.get("conclusion") is not None:
        asked = {"status": "completed", "completed_at": stamp(call.now), **asked}
    elif asked.get("status") == "completed":
        raise invalid("CheckRun", "conclusion", "missing_field")
    elif "status" in asked:
        asked = {**asked, "conclusion": None, "completed_at": None}
    output = asked.get("output") or {}
    run.annotations += [{**_blank(), **each} for each in output.get("annotations", [])]
    kept = {name: value for name, value in output.items() if name != "annotations"}
    names = ("name", "status", "conclusion", "details_url", "external_id", "started_at", "completed_at")
    run.data |= {name: asked[name] for name in names if name in asked}
    run.data["output"] = {**run.data.get("output", {}), **kept}


def check_output(asked: Json) -> None:
    """Refuse what GitHub refuses in a check run's output."""
    if asked.get("conclusion") not in (None, *CONCLUSIONS):
        raise invalid("CheckRun", "conclusion")
    output = asked.get("output")
    if output is None:
        return
    if not output.get("title") or output.get("summary") is None:
        raise invalid("CheckRun", "output", "missing_field")
    if any(len(output.get(name) or "") > 65_535 for name in ("summary", "text")):
        raise invalid("CheckRun", message="Only 65535 characters are allowed")
    annotations = output.get("annotations", [])
    if len(annotations) > MOST:
        raise invalid("CheckRun", message=f"Only {MOST} annotations are allowed per request")
    for annotation in annotations:
        levels = ("notice", "warning", "failure")
        if any(name not in annotation for name in NEEDED) or annotation["annotation_level"] not in levels:
            raise invalid("CheckRun", "annotations")


def _blank() -> Json:
    return dict.fromkeys(("start_column", "end_column", "title", "raw_details")) | {"blob_href": ""}


def _run(repository: Repo, number: str) -> CheckRun:
    if not number.isdigit() or int(number) not in repository.checks:
        raise not_found()
    return repository.checks[int(number)]


def _sha(repository: Repo, ref: str) -> str:
    sha = repository.sha_of(ref)
    if sha is None:
        raise RefusedError(422, f"No commit found for SHA: {ref}")
    return sha


def _shown(call: Call, repository: Repo, run: CheckRun) -> Json:
    return check_run(run, repository, call.base, next(iter(call.world.apps.values())))
