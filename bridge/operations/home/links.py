"""Links to the dashboard, and its pages' addresses (ruling M6)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from activities.settings import ready
from bridge.machine import daemon_state, dashboard_link, token
from bridge.machine.web_ui import PATH
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.model.errors import RefusedError

if TYPE_CHECKING:
    from workflows.model.rows import JobRecord

FIRST, RUNS, REVIEWS = "/ui/", "/ui/runs", "/ui/reviews"


def link(service: Service, actor: str, page: str = FIRST) -> str:
    """Return a link that logs in once, and opens a page of the dashboard."""
    bridge = ready.read(service.home.bridge_ready)
    if bridge is None or not bridge.alive or not bridge.address:
        raise RefusedError("the dashboard is served by the bridge, which does not run", "service daemon start")
    token.ensure(service.home)
    where = ready.dashboard_url(service.home, service.settings.bridge)
    return f"{where}/ui/enter?code={dashboard_link.make(service.home, actor)}&to={quote(page, safe='/')}"


def page_of(service: Service, what: str) -> str:
    """Return the page that this argument names: a job or tree by its id, a page by its path; by default the first
    page.
    """
    if what.startswith("/ui/"):
        return what
    return page_of_job(service, what) if what else FIRST


def page_of_job(service: Service, job_id: str) -> str:
    """Return the page of a job; of its tree if it is the root."""
    return page_of_record(jobs.get(service, job_id))


def page_of_record(job: "JobRecord") -> str:
    """Return the page of a job's record."""
    return f"/ui/trees/{job.job_id}" if job.root_job_id == job.job_id else f"/ui/jobs/{job.job_id}"


def page_of_jobs(service: Service, tree: str | None, **narrowed: object) -> str:
    """Return the address of the list of jobs with these filters; for one tree's jobs, of that tree's page."""
    return page_of_tree(service, tree) if tree is not None else _with_query("/ui/jobs", narrowed)


def page_of_trees(**narrowed: object) -> str:
    """Return the address of the list of trees with these filters."""
    return _with_query("/ui/trees", narrowed)


def _with_query(path: str, by: Mapping[str, object]) -> str:
    query = urlencode({name: str(value) for name, value in by.items() if value})
    return f"{path}?{query}" if query else path


def page_of_tree(service: Service, job_id: str) -> str:
    """Return the page of the tree that a job belongs to."""
    return f"/ui/trees/{jobs.get(service, job_id).root_job_id}"


def page_of_pipeline(service: Service, name: str) -> str:
    """Return the page of a pipeline."""
    from bridge.operations.pipelines import definitions

    return f"/ui/pipelines/{quote(definitions.get(service, name).name, safe='')}"


def page_of_run(service: Service, run_id: str) -> str:
    """Return the page of a pipeline run."""
    from bridge.operations.pipelines import runs

    return f"/ui/runs/{runs.show_run(service, run_id).id}"


def web_ui(service: Service, workflow_id: str) -> str | None:
    """Return the page of a workflow in Temporal's web UI, beside the dashboard's; None if the daemon has no web UI."""
    daemon = daemon_state.status(service.home)
    if not daemon.running or daemon.state is None or not daemon.state.ui_url:
        return None
    return f"{PATH}/namespaces/{daemon.state.namespace}/workflows/{workflow_id}"
