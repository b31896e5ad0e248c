"""Answers on the first page reach the round that was seen, or are refused with the words kept (ruling M2)."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.settings.home import Home
from activities.store import job_rows, round_rows
from bridge.operations.orders import attention
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import ANN, Shown, Surfer
from tests.bridge.seeds import ROOT
from tests.secrets.redaction_table import TOKENS
from tests.temporal.host import Handle, Host, Script, an_input, ended, script, serving, start
from tests.temporal.people import asking, human
from tests.tree.simulator import delegation
from tests.waiting import until
from workflows.model.rounds import RoundEnd
from workflows.model.rows import QuestionRecord, Records, RoundRecord
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("M2")

SAY, CHOSEN = "/ui/attention/say", "/ui/attention/chosen"
STORE = QuestionRecord(id="store", prompt="which?", choices=("redis", "memory"), job_id=ROOT)
LIMIT = QuestionRecord(id="limit", prompt="how many?", job_id=ROOT)
HOSTILE = "</textarea><script>alert(1)</script>"


def kept(shown: Shown) -> list[str]:
    """Return typed texts that have no field any more."""
    return re.findall(r"<textarea readonly[^>]*>\n(.*?)</textarea>", shown.html, re.DOTALL)


# Without a worker: orders that the page itself refuses never reach a tree.


async def test_a_page_that_is_out_of_date_gets_409_and_the_text_stands_in_the_round_that_is_open_now(
    service: Service, ann: Surfer
) -> None:
    seeds.paused(service, questions=(STORE, LIMIT))
    form = (await ann.open("/ui/")).form(SAY)
    over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": 9.0, "closed": "answered by bob at noon"}
    seeds.write(service, seeds.round_(questions=(STORE, LIMIT), revision=2, **over))
    again = seeds.round_(round_id=f"{ROOT}-r2", number=2, digest="e", questions=(LIMIT,), revision=3)
    seeds.write(service, again)
    shown = await ann.send(form, "Answer", **{"text.store": f"etcd {HOSTILE}", "text.limit": f"five\n{HOSTILE}"})
    assert shown.status == 409
    assert "round 1 of job-0123456789ab is over: answered by bob at noon; round 2 waits now" in shown.words
    assert shown.form(SAY).fields["text.limit"] == [f"five\n{HOSTILE}"], "in the field of the question asked now"
    assert [each.replace("&lt;", "<").replace("&gt;", ">") for each in kept(shown)] == [f"etcd {HOSTILE}"]
    assert "<script>alert" not in shown.html


async def test_what_was_typed_for_a_round_that_is_gone_can_be_copied(service: Service, ann: Surfer) -> None:
    seeds.paused(service, questions=(STORE,))
    form = (await ann.open("/ui/")).form(SAY)
    over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": 9.0, "closed": "answered by bob at noon"}
    seeds.write(service, seeds.round_(revision=2, **over), seeds.task(state=TaskState.DONE, revision=2))
    shown = await ann.send(form, "Answer", **{"text.store": "a long thought"})
    assert (shown.status, kept(shown)) == (409, ["a long thought"])
    assert "kept here, so that you can copy it" in shown.words
    assert "answered by bob at noon" in shown.words


@pytest.mark.ruling("M3")
async def test_what_was_typed_on_a_tree_s_page_stays_there_in_the_round_that_is_open_now(
    service: Service, ann: Surfer
) -> None:
    seeds.paused(service, questions=(STORE, LIMIT))
    form = (await ann.open(f"/ui/trees/{ROOT}")).form(SAY)
    over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": 9.0, "closed": "answered by bob at noon"}
    seeds.write(service, seeds.round_(questions=(STORE, LIMIT), revision=2, **over))
    seeds.write(service, seeds.round_(round_id=f"{ROOT}-r2", number=2, digest="e", questions=(LIMIT,), revision=3))
    shown = await ann.send(form, "Answer", **{"text.store": "etcd", "text.limit": "five"})
    assert (shown.status, shown.form(SAY).fields["text.limit"], kept(shown)) == (409, ["five"], ["etcd"])


async def test_a_question_that_has_changed_is_not_answered(service: Service, ann: Surfer) -> None:
    seeds.paused(service, questions=(STORE,))
    form = (await ann.open("/ui/")).form(SAY)
    seeds.write(service, seeds.round_(questions=(STORE, LIMIT), digest="changed", revision=2))
    shown = await ann.send(form, "Answer: redis")
    assert (shown.status, "has changed since you saw it" in shown.words) == (409, True)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"text.store": "redis"}, "nothing answers `limit`"),
        ({"text.limit": "5\nstore: memory", "text.store": "redis"}, "begins with the name of another question"),
        ({}, "the answer is empty"),
    ],
)
async def test_what_is_not_whole_is_refused_with_all_that_was_typed(
    service: Service, ann: Surfer, fields: dict[str, str], why: str
) -> None:
    seeds.paused(service, questions=(STORE, LIMIT))
    form = (await ann.open("/ui/")).form(SAY)
    shown = await ann.send(form, "Answer", **fields, **{"choice.store": "1"})
    assert shown.status == 409
    if fields:
        assert why in shown.words
    after = shown.form(SAY).fields
    assert after["choice.store"] == ["1"]
    assert {name: after[name] for name in fields} == {name: [text] for name, text in fields.items()}
    assert kept(shown) == []


@pytest.mark.ruling("N7")
@pytest.mark.usefixtures("kept")
async def test_a_refusal_is_told_without_the_secrets_of_what_was_typed(service: Service, ann: Surfer) -> None:
    """The field keeps the text for the person to correct."""
    secret = TOKENS["GitHub personal"]
    seeds.paused(service, questions=(STORE, LIMIT))
    form = (await ann.open("/ui/")).form(SAY)
    shown = await ann.post(SAY, form.fields | {"say": [secret]})
    assert shown.status == 409
    assert secret not in shown.html
    shown = await ann.send(form, "Answer", **{"text.limit": secret})
    assert shown.status == 409
    assert shown.html.count(secret) == 1
    assert shown.form(SAY).fields["text.limit"] == [secret]


async def test_a_verb_the_round_does_not_take_is_refused(service: Service, ann: Surfer) -> None:
    seeds.paused(service)
    form = (await ann.open("/ui/")).form(SAY)
    shown = await ann.post(SAY, form.fields | {"say": ["abort"]})
    assert (shown.status, "takes answer, extend, not abort" in shown.words) == (409, True)


@pytest.mark.parametrize("change", [{"seen": ["x"]}, {"seen": []}, {"seen": [f"{ROOT}|²|d|1"]}, {"pick": ["7"]}])
async def test_a_form_nobody_made_is_refused(service: Service, ann: Surfer, change: dict[str, list[str]]) -> None:
    seeds.paused(service, questions=(STORE,))
    form = (await ann.open("/ui/")).form(SAY)
    assert (await ann.post(SAY, form.fields | {"say": ["answer"]} | change)).status == 400


async def test_without_temporal_the_text_stays_too(service: Service, ann: Surfer) -> None:
    seeds.paused(service, questions=(LIMIT,))
    form = (await ann.open("/ui/")).form(SAY)
    shown = await ann.send(form, "Answer", **{"text.limit": "five"})
    assert (shown.status, shown.form(SAY).fields["text.limit"]) == (503, ["five"])


async def test_nothing_chosen_is_said(service: Service, ann: Surfer) -> None:
    for number in range(2):
        seeds.paused(service, f"job-{number:012d}")
    shown = await ann.send((await ann.open("/ui/")).form(CHOSEN), "Extend")
    assert (shown.status, "nothing is chosen" in shown.words) == (400, True)


# With running trees.


@dataclass
class Working:
    """A service whose trees run on a scripted host that writes their rows into its store."""

    service: Service
    client: Client

    @asynccontextmanager
    async def trees(
        self, *scripts: Script, blocked: Script | None = None, bounds: Bounds | None = None
    ) -> AsyncIterator[list[Handle]]:
        """One tree each: those of `scripts` wait for a person, one more is blocked."""
        by_root: dict[str, Script] = {}
        host = Host(lambda run: by_root[run.root_job_id](run))

        async def write(records: Records) -> None:
            job_rows.write(self.service.store, records)

        host.before_write = write
        queue = self.service.settings.temporal.task_queue
        async with serving(self.client, queue, host):
            begun = []
            for script in (*scripts, *([blocked] if blocked else [])):
                tree = an_input(bounds=bounds)
                by_root[tree.root_job_id] = script
                begun.append(await start(self.client, queue, tree))
            await until(
                lambda: len(round_rows.open_rounds(self.service.store)) == len(scripts), lambda: str(host.names)
            )
            if blocked:
                await ended(begun[-1])
                await until(lambda: attention.find(self.service).blocked, "blocked")
            yield begun

    def closed(self, tree: Handle) -> RoundRecord | None:
        return next((each for each in round_rows.of_tree(self.service.store, tree.id) if each.end), None)


@pytest.fixture
def working(home: Home, client: Client) -> Working:
    address, queue = client.service_client.config.target_host, f"service-{uuid4().hex[:8]}"
    home.config.write_text(f'[temporal]\naddress = "{address}"\nnamespace = "default"\ntask_queue = "{queue}"\n')
    return Working(Service(home), client)


@pytest_asyncio.fixture
async def bea(working: Working) -> AsyncIterator[Surfer]:
    async with Surfer(working.service) as surfer:
        await surfer.enter()
        yield surfer


def fails() -> Script:
    """Return a script in which a leg fails and a person decides."""
    return asking({"root": (human("a"),), "a": ["failed", "approved"]})


async def waiting_for(working: Working, tree: Handle) -> RoundRecord:
    await until(lambda: working.closed(tree), lambda: str(round_rows.of_tree(working.service.store, tree.id)))
    row = working.closed(tree)
    assert row is not None
    return row


async def test_an_answer_is_recorded_with_name_and_channel(working: Working, bea: Surfer) -> None:
    async with working.trees(asking({}, "root")) as [tree]:
        form = (await bea.open("/ui/")).form(SAY)
        shown = await bea.send(form, "Answer: blue", **{"text.q-root": "but light:\nNote: not navy"})
        assert (shown.status, "answer is accepted" in shown.words) == (200, True)
        closed = await waiting_for(working, tree)
    assert closed.closed.startswith(f"answered by {ANN}, on the page at ")
    assert closed.questions[0].answer == "blue\n but light:\n Note: not navy"
    words = (await bea.open("/ui/")).words.split("Recently done")[1]
    assert f"answered by {ANN}, on the page" in words


async def test_a_form_that_is_sent_twice_acts_once_and_says_the_same(working: Working, bea: Surfer) -> None:
    async with working.trees(asking({}, "root")) as [tree]:
        form = (await bea.open("/ui/")).form(SAY)
        first = await asyncio.gather(bea.send(form, "Answer: blue"), bea.send(form, "Answer: blue"))
        closed = await waiting_for(working, tree)
        late = await bea.send(form, "Answer: blue")
        other = await bea.send(form, "Answer: red")
    assert [each.status for each in (*first, late)] == [200] * 3
    assert (other.status, closed.closed in other.words) == (409, True)


async def test_more_time_is_given_once_for_each_deadline_seen(working: Working, bea: Surfer) -> None:
    async with working.trees(asking({}, "root")):
        store = working.service.store
        [before] = round_rows.open_rounds(store)
        form = (await bea.open("/ui/")).form(SAY)
        for _ in range(2):
            assert (await bea.send(form, "Extend", by="1d")).status == 200
        await until(lambda: round_rows.open_rounds(store)[0].expires_at > before.expires_at, lambda: "extended")
        [after] = round_rows.open_rounds(store)
        assert after.expires_at - before.expires_at == pytest.approx(86_400, abs=60)
        fresh = (await bea.open("/ui/")).form(SAY)
        assert (await bea.send(fresh, "Extend", by="1d")).status == 200
        await until(lambda: round_rows.open_rounds(store)[0].expires_at > after.expires_at, lambda: "extended")


@pytest.mark.parametrize(
    ("button", "end"),
    [("Retry a", RoundEnd.RETRIED), ("Go on without a", RoundEnd.CONTINUED), ("Abort", RoundEnd.ABORTED)],
)
async def test_a_failure_is_decided_in_place(working: Working, bea: Surfer, button: str, end: RoundEnd) -> None:
    async with working.trees(fails()) as [tree]:
        form = (await bea.open("/ui/")).form(SAY)
        shown = await bea.send(form, button, instructions="mind the limit")
        assert shown.status == 200, shown.words
        closed = await waiting_for(working, tree)
    assert (closed.end, closed.said) == (end, "mind the limit")


@pytest.mark.ruling("M1", "M3")
async def test_a_question_is_answered_on_its_tree_s_page_which_then_shows_how_things_are(
    working: Working, bea: Surfer
) -> None:
    async with working.trees(asking({}, "root"), asking({}, "root")) as trees:
        page = f"/ui/trees/{trees[0].id}"
        shown = await bea.open(page)
        assert "A question from lead" in shown.words
        shown = await bea.send(shown.form(SAY), "Answer", **{"text.q-root": "blue"})
        assert (shown.status, shown.address.partition("?")[0].endswith(page)) == (200, True), shown.words
        assert SAY not in [form.action for form in shown.read.forms], "nothing is asked any more"
        assert "blue" in shown.words.split("Jobs")[-1]
        assert re.findall(r'id="badge">(\d+)<', shown.html) == ["1"], "the other one"


@pytest.mark.ruling("M3")
async def test_a_failure_is_aborted_from_the_menu_of_its_tree_s_page(working: Working, bea: Surfer) -> None:
    async with working.trees(fails()) as [tree]:
        shown = await bea.open(f"/ui/trees/{tree.id}")
        form = shown.form(SAY)
        assert [words for *_, words in form.buttons] == ["Abort", "Retry a", "Go on without a", "Extend"]
        assert "Abort" not in shown.html.split('<form id="round-')[1].split("</form>")[0]
        shown = await bea.send(form, "Abort", instructions="it is too late")
        closed = await waiting_for(working, tree)
    assert (closed.end, closed.said) == (RoundEnd.ABORTED, "it is too late")


@pytest.mark.ruling("F4", "C3")
async def test_an_answer_at_the_job_cap_is_taken(working: Working, bea: Surfer) -> None:
    script = asking({"root": (delegation("a"),)}, "a")
    async with working.trees(script, bounds=Bounds(max_delegation_total_jobs=1)) as [tree]:
        form = (await bea.open("/ui/")).form(SAY)
        assert [words for *_, words in form.buttons][-2:] == ["Answer", "Extend"]
        assert (await bea.post(SAY, form.fields | {"say": ["answer"], "text.q-a": ["blue"]})).status == 200
        assert (await waiting_for(working, tree)).end is RoundEnd.ANSWERED


async def test_of_several_that_are_chosen_each_has_a_result_of_its_own(working: Working, bea: Surfer) -> None:
    async with working.trees(fails(), asking({}, "root"), fails()) as trees:
        form = (await bea.open("/ui/")).form(CHOSEN)
        assert len(form.boxes["chosen"]) == 3
        shown = await bea.send(form, "Go on without what failed", chosen=form.boxes["chosen"])
        assert shown.status == 200
        notes = re.findall(r'<p class="note (ok|no)"><b>(.*?)</b>: (.*?)</p>', shown.html, re.DOTALL)
        outcomes = {about.rpartition(" ")[2]: (how, words) for how, about, words in notes}
        for tree in (trees[0], trees[2]):
            assert outcomes[tree.id][0] == "ok"
            assert (await waiting_for(working, tree)).end is RoundEnd.CONTINUED
        assert outcomes[trees[1].id][0] == "no"
        assert "takes answer, extend, not continue" in outcomes[trees[1].id][1]
        assert [each.root_job_id for each in round_rows.open_rounds(working.service.store)] == [trees[1].id]


async def test_a_blocked_task_is_dismissed_in_place(working: Working, bea: Surfer) -> None:
    stops = script({"root": (delegation("a"),), "a": "failed"})
    async with working.trees(asking({}, "root"), blocked=stops) as trees:
        shown = await bea.open("/ui/")
        over = await bea.send(shown.form(f"/ui/trees/{trees[1].id}/dismiss"))
        assert (over.status, f"{trees[1].id} : The task is given up" in over.words) == (200, True)
        task = job_rows.task_of(working.service.store, trees[1].id)
        assert task is not None
        assert (task.state, ANN in task.reason) == (TaskState.CANCELLED, True)
        assert f"dismissed by {ANN}" in (await bea.open("/ui/")).words.split("Recently done")[1]


@pytest.mark.parametrize(
    ("action", "why", "status"),
    [
        (f"/ui/jobs/{ROOT}/retry", "nothing of the task", 409),
        (f"/ui/jobs/{ROOT}/merge", "the repository acme/shop is not registered", 404),
        (f"/ui/jobs/{ROOT}/drop", "is not registered", 409),
        (f"/ui/trees/{ROOT}/kill", "to end", 409),
    ],
)
async def test_what_another_action_refuses_is_said(
    working: Working, bea: Surfer, action: str, why: str, status: int
) -> None:
    seeds.write(working.service, seeds.task(state=TaskState.DONE), seeds.job(state=JobState.SUCCEEDED))
    form = {"token": (await bea.open("/ui/")).form("/ui/leave").fields["token"], "how": ["graceful"], "from": ["/ui/"]}
    shown = await bea.post(action, form)
    assert (shown.status, why in shown.words) == (status, True), shown.words
