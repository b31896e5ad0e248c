"""The page of agents, runtimes, repositories and hosts (ruling M4)."""

from collections import defaultdict
from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.health import runtimes
from bridge.operations.health.runtimes import RuntimeStatus
from bridge.operations.jobs import hosts, jobs, spend
from bridge.operations.jobs.spend import SpendSum
from bridge.operations.registry import agents, repos
from bridge.operations.service import Service
from workflows.contract.models import AutonomyPolicy
from workflows.model.workers import SessionScope
from workflows.policy.decisions import decision_label
from workflows.policy.host_availability import way_back

RUNTIMES: Background[list[RuntimeStatus]] = Background(runtimes.check_runtimes)
DAYS = 30
OUTCOMES = 10
AUTONOMY = {
    AutonomyPolicy.AUTO: "Reads only; its program enforces that without asking",
    AutonomyPolicy.READ_ONLY: "Reads, and changes nothing",
    AutonomyPolicy.WORKSPACE_WRITE: "May write in its own worktree",
    AutonomyPolicy.DANGER_FULL_ACCESS: "May do everything that the service's own account may",
}
SESSIONS = {
    SessionScope.FRESH: "Every job begins a session of its own",
    SessionScope.TREE: "A coordinator goes on in the session of its first job",
}


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    seen = RUNTIMES.last_check(service)
    spent = {line.name: line.used for line in spend.find(service, DAYS).agents}
    return {
        "title": "Agents",
        "agents": agents.every(service),
        "seen": seen,
        "works_now": {runtime.name: runtime.works for runtime in seen.answer or ()},
        "repos": repos.every(service),
        "hosts": hosts.every(service),
        "way_back": way_back,
        "autonomy": AUTONOMY,
        "sessions": SESSIONS,
        "outcomes": jobs.last_outcomes(service, DAYS, OUTCOMES),
        "label": decision_label,
        "spent": defaultdict(SpendSum, spent),
        "days": DAYS,
    }


async def _check(service: Service, form: SubmittedForm) -> Done:
    RUNTIMES.begin(service)
    return success("the programs are being asked")


PAGES = (PageView("/agents", "agents.html", _look, fresh_seconds=2.0),)
ACTIONS = (FormAction("/agents/check", _check),)
