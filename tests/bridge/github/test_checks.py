"""The verdict on the head of a pull request, also for trees that end soon (ruling L10)."""

import time

import pytest

from activities.store.github import account, facts
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, bind
from workflows.model.states import JobState, TaskState

ROOT = seeds.ROOT


@pytest.fixture
def settings() -> str:
    return "check = true"


async def ended(office: Office, number: int) -> None:
    """Seed a review that approved before the first look at the pull request."""
    bind(office, number, action="review")
    done = seeds.task(state=TaskState.DONE, reason="it is finished", revision=2, ended_at=time.time())
    job = seeds.job(pull_request=number, action="review", state=JobState.SUCCEEDED, decision="approved", revision=2)
    seeds.write(office.service, done, job, seeds.event(2, kind="tree_ended"))


@pytest.mark.ruling("L10")
async def test_a_tree_that_was_over_before_the_first_look_is_judged_too(office: Office) -> None:
    number = office.hub.pull()
    head = office.hub.pull_of(number)["head"]["sha"]
    await ended(office, number)
    await office.turns()
    assert [each["context"] for each in office.hub.statuses(head)] == ["service/gate"], "a user gives statuses"


@pytest.mark.ruling("L10")
async def test_a_new_head_is_judged_as_long_as_the_pull_request_is_open(office: Office) -> None:
    number = office.hub.pull()
    await ended(office, number)
    await office.turns()
    head = office.hub.push_head(number)
    account.want_reading(office.session.store)
    await office.turns()
    assert len(office.hub.statuses(head)) == 1
    office.hub.close(number)
    account.want_reading(office.session.store)
    await office.turns()
    asked = len(office.hub.requests)
    account.want_reading(office.session.store)
    await office.turns()
    assert len(office.hub.requests) == asked, "nothing can be judged any more"


@pytest.mark.ruling("L10")
async def test_what_a_merge_queue_tries_is_judged_too(office: Office) -> None:
    number = office.hub.pull()
    await ended(office, number)
    sha = office.hub.push(f"gh-readonly-queue/main/pr-{number}-{'a' * 40}")
    await office.turns()
    assert len(office.hub.statuses(sha)) == 1


@pytest.mark.ruling("L10")
async def test_a_question_that_is_asked_later_does_not_decide(office: Office) -> None:
    """Otherwise everybody who may ask could get a rejected pull request passed."""
    number = office.hub.pull()
    await ended(office, number)
    other = "job-9123456789cd"
    bind(office, number, other)
    await office.turns()
    kinds = {each.fact_id.partition("-check")[0] for each in facts.of_root(office.session.store, ROOT)}
    assert any("check" in each.fact_id for each in facts.of_root(office.session.store, ROOT)), kinds
    assert not any("check" in each.fact_id for each in facts.of_root(office.session.store, other))


@pytest.mark.ruling("L10")
async def test_a_tree_that_is_started_between_two_looks_is_judged_without_waiting_for_the_next(office: Office) -> None:
    """Heads are known only for trees that existed at the last look."""
    number = office.hub.pull()
    await ended(office, number)
    await office.turns()
    later = "job-9123456789cd"
    bind(office, number, later, action="review")
    await office.turns()
    assert [each.kind for each in facts.of_root(office.session.store, later) if "check" in each.fact_id] == ["check"]
