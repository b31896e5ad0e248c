"""Repeated, reordered or lost deliveries, looks in between, and concurrent turns: each order acts once (L7)."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from activities.settings.home import Home
from activities.store import schema
from activities.store.github import account
from bridge.github import orders
from bridge.operations.github import polling
from bridge.operations.orders.resume import ResumeOutcome
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, bind, working
from tests.depth import cases
from tests.github.deliver import Delivery, comment_delivery
from tests.github.hub import Hub
from workflows.model.orders import ResumeOrder

MOST = 4
STEPS = st.one_of(
    st.sampled_from(["write", "look", "turn", "two at once", "restored"]),
    st.tuples(st.just("deliver"), st.integers(0, MOST - 1)),
)


class Tree:
    """Accepts each order once by its request id, like the real one."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}

    async def resume(self, _: Service, order: ResumeOrder) -> ResumeOutcome:
        assert self.taken.setdefault(order.request_id, order.text) == order.text
        await asyncio.sleep(0)
        return ResumeOutcome("recorded", applied=True)


class Play:
    """A pull request on which ann writes one order after the other."""

    def __init__(self, office: Office, number: int) -> None:
        self.office, self.number = office, number
        self.written: list[str] = []
        self.deliveries: list[Delivery] = []

    async def do(self, step: str | tuple[str, int]) -> None:
        match step:
            case "write":
                self.write()
            case "look":
                self._due()
                await self.office.turn()
            case "turn":
                await self.office.turn()
            case "two at once":
                self._due()
                await asyncio.gather(self.office.turn(), self.office.turn())
            case "restored":
                account.note_reading(self.office.session.store, "acme/tool", since=0.0)
            case (_, at):
                self.deliver(int(at))
            case _:
                pass

    def write(self) -> None:
        if len(self.written) < MOST:
            body = f"/service resume answer {len(self.written)}"
            comment = self.office.hub.comment(as_="ann", number=self.number, body=body)
            self.written.append(f"{len(self.written)}")
            self.deliveries.append(comment_delivery(self.office.hub, comment))

    def deliver(self, at: int) -> None:
        """Deliver as GitHub does, a second time under an equal id."""
        if at < len(self.deliveries):
            sent = self.deliveries[at]
            taken = polling.WebhookDelivery(sent.id, sent.event, "application/json", sent.body)
            polling.take(self.office.service, taken)

    def _due(self) -> None:
        """Let the time until the next look at the repository pass."""
        with self.office.session.store.begin() as connection:
            connection.execute(update(schema.github_repos).values(next_at=0.0))


async def played(home: Home, steps: Sequence[str | tuple[str, int]]) -> None:
    tree = Tree()
    with Hub() as hub, patch.object(orders, "resume", tree.resume):
        hub.repo("acme/tool")
        hub.user("ann", role="write")
        async with working(home, hub) as office:
            play = Play(office, hub.pull())
            bind(office, play.number)
            asked = seeds.round_(opened_at=time.time(), expires_at=time.time() + 60)
            seeds.write(office.service, asked, seeds.event(2, kind="round_opened"))
            await office.turns()
            for step in steps:
                await play.do(step)
            await play.do("look")
            await office.turns()
            assert list(tree.taken.values()) == play.written
            ann = [each["id"] for each in hub.comments(play.number) if each["user"]["login"] == "ann"]
            assert all([content for _, content in hub.reactions(each)] == ["eyes", "+1"] for each in ann)


@pytest.mark.ruling("L5", "L7")
@given(st.lists(STEPS, max_size=14))
@settings(max_examples=cases(8, 150))
def test_however_they_arrive_the_same_comments_order_the_same_once_and_in_order(
    empty_store: Path, steps: list[str | tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).ensure()
        shutil.copyfile(empty_store, home.store)
        asyncio.run(played(home, steps))


@pytest.mark.ruling("L7")
async def test_one_that_github_shows_late_is_not_missed(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comment was written before one that was already read, and is shown later."""
    tree, number = Tree(), office.hub.pull()
    monkeypatch.setattr(orders, "resume", tree.resume)
    play = Play(office, number)
    bind(office, number, queued_at=time.time() - 600)
    asked = seeds.round_(opened_at=time.time() - 500, expires_at=time.time() + 60)
    seeds.write(office.service, asked, seeds.event(2, kind="round_opened"))
    await office.turns()
    play.write()
    await play.do("look")
    before = datetime.now(UTC) - timedelta(seconds=20)
    office.hub.comment(as_="ann", number=number, body="/service resume answer late", at=before)
    await play.do("look")
    assert list(tree.taken.values()) == ["0", "late"]
