"""The product's desk on the tests' small GitHub, with trees whose rows a test writes; without Temporal."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy import update

from activities.github.client import Client
from activities.github.credentials import Credentials
from activities.settings.home import Home
from activities.store import schema
from activities.store.github import account
from activities.store.registry import repo_rows
from bridge.github import orders
from bridge.github.desk import Desk
from bridge.github.session import GithubSession
from bridge.operations.orders.resume import ResumeOutcome
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.conftest import NO_TEMPORAL
from tests.github.conftest import hub as hub
from tests.github.hub import Hub
from workflows.github.facts import fact_in
from workflows.model.orders import ResumeOrder
from workflows.temporal.github_desk import Turn


@dataclass
class Office:
    """The GitHub process, one turn at a time; waits between turns are skipped."""

    hub: Hub
    session: GithubSession

    @property
    def service(self) -> Service:
        return self.session.service

    async def turn(self) -> Turn:
        """Take one turn, as if the wait before it were over."""
        account.note(self.session.store, wrote_at=0.0)
        with self.session.store.begin() as connection:
            connection.execute(update(schema.github_facts).values(next_at=0.0))
        return await Desk(self.session)._turn()

    async def turns(self, most: int = 40) -> list[Turn]:
        """Take turns until there is nothing to do, or nothing can be done."""
        done = []
        for _ in range(most):
            done.append(await self.turn())
            stuck = len(done) > 1 and done[-1].says == done[-2].says and "waits" in done[-1].says
            if done[-1].says == "nothing to do" or stuck or account.read(self.session.store).blocked_until:
                return done
        raise AssertionError(f"no end: {[each.says for each in done]}")


@pytest.fixture
def settings() -> str:
    """Return the rest of `[github]`."""
    return ""


@asynccontextmanager
async def working(home: Home, hub: Hub, settings: str = "", login: str = "helper") -> AsyncIterator[Office]:
    """A service with an account, for acme/shop, which is acme/tool on GitHub."""
    home.config.write_text(f'[github]\ntoken_env = "OUR_TOKEN"\napi_url = "{hub.address}"\n{settings}\n{NO_TEMPORAL}')
    service = Service(home)
    repo_rows.put(service.store, "acme/shop", "/srv/checkouts/shop", service.settings.host, "acme/tool")
    async with Client(service.store, Credentials(hub.user(login, role="write")), hub.address) as client:
        yield Office(hub, GithubSession(service, client))


@pytest.fixture
async def office(hub: Hub, home: Home, settings: str) -> AsyncIterator[Office]:
    """Open an office as `helper`."""
    async with working(home, hub, settings) as made:
        yield made


def bind(office: Office, number: int, root: str = seeds.ROOT, **fields: object) -> None:
    """Seed a running tree of this pull request."""
    event = seeds.event(1, root, kind="tree_started")
    seeds.write(office.service, seeds.task(root), seeds.job(root, pull_request=number, **fields), event)


@pytest.fixture
def resumes(monkeypatch: pytest.MonkeyPatch) -> list[ResumeOrder]:
    """Record the orders that reach the tree; it accepts everything."""
    taken: list[ResumeOrder] = []

    async def resume(_: Service, order: ResumeOrder) -> ResumeOutcome:
        taken.append(order)
        return ResumeOutcome("recorded", applied=True)

    monkeypatch.setattr(orders, "resume", resume)
    return taken


async def waiting(office: Office, number: int, root: str = seeds.ROOT) -> None:
    """Seed a tree of this pull request that asks people, and write its comments."""
    bind(office, number, root)
    asked = seeds.round_(root, opened_at=time.time(), expires_at=time.time() + 60)
    seeds.write(office.service, asked, seeds.event(2, root, kind="round_opened"))
    await office.turns()


async def heard(office: Office) -> None:
    """Read comments now, and write everything that follows."""
    account.want_reading(office.session.store)
    await office.turns()


def answers(office: Office, number: int) -> list[str]:
    """Return the marks of our comments that are not the tree's own."""
    marks = [fact_in(each["body"]) or "" for each in office.hub.comments(number) if each["user"]["login"] == "helper"]
    return [mark for mark in marks if not mark.startswith("job-")]
