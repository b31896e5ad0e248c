"""What waits for a person (rulings M1, M2)."""

from collections.abc import Mapping

from bridge.http.page.page import Action, Asked, Page
from bridge.operations import attention
from bridge.operations.service import Service


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    found = attention.find(service)
    return {"title": "Attention", "found": found, "waiting": len(found.waiting)}


PAGES = (Page("/", "attention.html", _look),)
ACTIONS: tuple[Action, ...] = ()
