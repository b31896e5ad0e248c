"""The page of everything that waits for a person, each with its actions in place (rulings M1, M2).

`resuming` answers pauses. A form that acts on a job or a tree is sent to the page of that job or tree, which redirects
back here.
"""

from collections.abc import Mapping

from activities.store.tree_list import TreeFilter
from bridge.http.dashboard.frame.page import FormAction, PageRequest, PageView
from bridge.http.dashboard.parts import resuming
from bridge.operations.jobs import tree_list
from bridge.operations.orders import attention
from bridge.operations.service import Service
from workflows.policy.tree_states import TreeGroup

READY = 5
"""The number of tasks with work to merge on the page; a link shows all."""


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    page = resuming.page_of(service, asked.query)
    quiet = page.total == 0
    return {
        "title": "Attention",
        "waiting": page.total,
        "ready": tree_list.find(service, TreeFilter(state=TreeGroup.READY, limit=READY + 1)),
        "most_ready": READY,
        "lately": attention.lately(service),
        "running": attention.running(service) if quiet else (),
        "unused": quiet and attention.nothing_ever_ran(service),
        "most": resuming.MOST,
        **resuming.values_of(service, page),
    }


PAGES = (PageView("/", "attention.html", _look),)
ACTIONS = (
    FormAction("/attention/say", resuming.say),
    FormAction("/attention/chosen", resuming.say_to_chosen),
)
