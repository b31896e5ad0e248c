"""Where the dashboard is, and links that open it (ruling M6)."""

from urllib.parse import quote

from activities import ready
from bridge.machine import daemon_state, dashboard_link, token
from bridge.operations import jobs
from bridge.operations.service import Service
from workflows.model.errors import RefusedError


def link(service: Service, actor: str, job_id: str = "") -> str:
    """A link that begins a session, once, at what waits for people or at a job."""
    address = bridge_url(service)
    if address is None:
        raise RefusedError("the dashboard is served by the bridge, which does not run", "service daemon start")
    to = page_of(service, job_id) if job_id else "/ui/"
    token.ensure(service.home)
    return f"{address}/ui/enter?code={dashboard_link.make(service.home, actor)}&to={quote(to)}"


def page_of(service: Service, job_id: str) -> str:
    """The page of a tree, by its root, or of one job in it."""
    job = jobs.get(service, job_id)
    return f"/ui/trees/{job_id}" if job.root_job_id == job_id else f"/ui/jobs/{job_id}"


def bridge_url(service: Service) -> str | None:
    """Where the bridge of this home listens, while it runs."""
    bridge = ready.read(service.home.bridge_ready)
    return f"http://{bridge.address}" if bridge and bridge.alive and bridge.address else None


def web_ui(service: Service, workflow_id: str) -> str | None:
    """The same in Temporal's web UI, where the daemon has one."""
    said = daemon_state.status(service.home)
    if not said.running or said.state is None or not said.state.ui_url:
        return None
    return f"{said.state.ui_url}/namespaces/{said.state.namespace}/workflows/{workflow_id}"
