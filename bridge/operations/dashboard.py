"""Where the dashboard is, and links that open it (ruling M6)."""

from urllib.parse import quote

from activities import ready
from bridge.machine import dashboard_link, token
from bridge.operations import jobs
from bridge.operations.service import Service
from workflows.model.errors import RefusedError


def link(service: Service, actor: str, job_id: str = "") -> str:
    """A link that begins a session, once, at what waits for people or at a job."""
    bridge = ready.read(service.home.bridge_ready)
    if bridge is None or not bridge.alive or not bridge.address:
        raise RefusedError("the dashboard is served by the bridge, which does not run", "service daemon start")
    to = page_of(service, job_id) if job_id else "/ui/"
    token.ensure(service.home)
    return f"http://{bridge.address}/ui/enter?code={dashboard_link.make(service.home, actor)}&to={quote(to)}"


def page_of(service: Service, job_id: str) -> str:
    """The page of a tree, by its root, or of one job in it."""
    job = jobs.get(service, job_id)
    return f"/ui/trees/{job_id}" if job.root_job_id == job_id else f"/ui/jobs/{job_id}"
