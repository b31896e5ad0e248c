"""The page of everything that waits for a person, each with its actions in place (rulings M1, M2).

`resuming` answers pauses. A form that acts on a job or a tree is sent to the page of that job or tree, which redirects
back here.
"""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import FormAction, PageRequest, PageView
from bridge.http.dashboard.parts import resuming
from bridge.operations.orders import attention, follow_ups
from bridge.operations.service import Service
from workflows.contract import models
from workflows.policy.stalls import WAYS


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    page = resuming.page_of(service, asked.query)
    quiet = page.total == 0
    return {
        "title": "Attention",
        "page": page,
        "waiting": page.total,
        "lately": attention.lately(service),
        "running": attention.running(service) if quiet else (),
        "resolvers": _resolvers(service, page),
        "unused": quiet and attention.nothing_ever_ran(service),
        "seen_of": resuming.seen_of,
        "form_of": resuming.form_of,
        "most": resuming.MOST,
        "ways": WAYS,
        "durations": resuming.DURATIONS,
    }


def _resolvers(service: Service, page: attention.WaitingPage) -> set[str]:
    """Return the repositories with a conflict that an agent can resolve."""
    conflicting = {page.tasks[item.root_job_id].repo for item in page.items if item.knots}
    return {repo for repo in conflicting if follow_ups.possible(service, models.Action.IMPLEMENT, repo)}


PAGES = (PageView("/", "attention.html", _look),)
ACTIONS = (
    FormAction("/attention/say", resuming.say),
    FormAction("/attention/chosen", resuming.say_to_chosen),
)
