"""GitHub's rows in the store, as the GitHub process would have written them."""

import time
from typing import Any

from sqlalchemy import insert

from activities.store import schema
from activities.store.github import account, facts
from activities.store.github.facts import FactRow
from bridge.operations.service import Service
from tests.bridge.seeds import ROOT

SHOP = "acme/shop"
SETTINGS = '[github]\ntoken_env = "DESK_TOKEN"\n'


def thread(service: Service, root: str = ROOT, number: int = 7, github: str = SHOP, **fields: Any) -> None:
    """Bind a tree to a pull request, in a repository that is read."""
    row = {"root_job_id": root, "repo": SHOP, "github": github, "number": number, "kind": "pull_request"}
    row |= {"bound_at": 1.0, "told_seq": -1, "over": False}
    with service.store.begin() as connection:
        connection.execute(insert(schema.github_threads), row | fields)
    account.begin_reading(service.store, github, 1.0)


def fact(service: Service, fact_id: str, number: int = 7, github: str = SHOP, **fields: Any) -> FactRow:
    """Declare a fact to be written."""
    at, root = fields.pop("at", time.time()), fields.pop("root", ROOT)
    row = FactRow(fact_id, fields.pop("kind", "end"), root, github, number, at=at, **fields)
    facts.declare(service.store, [row])
    return row


def failed(service: Service, fact_id: str, why: str = "GitHub answers 403: no", **fields: Any) -> None:
    """Declare a fact that cannot be written."""
    fact(service, fact_id, **fields)
    facts.give_up(service.store, fact_id, why)
