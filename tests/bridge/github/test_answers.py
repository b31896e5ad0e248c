"""The pause an answer in a comment is for, its completeness, and retries by comment (rulings F4, F5, L4)."""

import time
from typing import Any

import pytest

from activities.store.github import threads
from bridge.operations.orders import trees
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, answers, bind, heard, waiting
from workflows.model.orders import ResumeOrder
from workflows.model.rows import QuestionRecord
from workflows.model.states import TaskState

ROOT, OTHER = seeds.ROOT, "job-0123456789cd"


@pytest.mark.ruling("L4", "F4")
@pytest.mark.parametrize("job", ["", f"{ROOT} "])
async def test_an_answer_is_for_the_round_that_was_open_when_it_was_written(
    office: Office, resumes: list[ResumeOrder], job: str
) -> None:
    """The desk was away for a while; meanwhile another answer came, and the tree asks again."""
    number = office.hub.pull()
    await waiting(office, number)
    office.hub.comment(as_="ann", number=number, body=f"/service resume {job}answer red")
    now = time.time()
    over: dict[str, Any] = {
        "end": "answered",
        "closed": "answered",
        "closed_at": now + 5,
        "opened_at": now - 9,
        "revision": 2,
    }
    seeds.write(office.service, seeds.round_(**over))
    again: dict[str, Any] = {"round_id": f"{ROOT}-r2", "number": 2, "opened_at": now + 9, "expires_at": now + 99}
    seeds.write(office.service, seeds.round_(**again), seeds.event(3, kind="round_opened"))
    await heard(office)
    assert [(order.job_id, order.round) for order in resumes] == [(ROOT, 1)]


@pytest.mark.ruling("L4", "F4")
@pytest.mark.parametrize("job", ["", f"{ROOT} "])
async def test_an_answer_to_what_was_not_asked_yet_is_refused(
    office: Office, resumes: list[ResumeOrder], job: str
) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    office.hub.comment(as_="ann", number=number, body=f"/service resume {job}answer red")
    later: dict[str, Any] = {"opened_at": time.time() + 9, "expires_at": time.time() + 99}
    seeds.write(office.service, seeds.round_(**later), seeds.event(2, kind="round_opened"))
    await heard(office)
    assert resumes == []
    assert "waited for a person when this was written" in office.hub.bodies(number)[-1]
    assert f"/service resume {ROOT} answer" in office.hub.bodies(number)[-1]


@pytest.mark.ruling("L6", "F4")
async def test_an_answer_where_every_task_is_over_says_so(office: Office, resumes: list[ResumeOrder]) -> None:
    """The repository is read still, for another tree waits elsewhere."""
    number, elsewhere = office.hub.pull(), office.hub.pull("other-topic")
    bind(office, number)
    bind(office, elsewhere, OTHER)
    await office.turns()
    seeds.write(office.service, seeds.task(state=TaskState.DONE, revision=2, ended_at=time.time()))
    office.hub.comment(as_="ann", number=number, body="/service resume answer red")
    await heard(office)
    assert resumes == []
    assert f"#\u200b{number} needs an answer any more: {ROOT} is done" in office.hub.bodies(number)[-1]


def commands(root: str) -> tuple[str, ...]:
    return (f'service resume {root} answer "store: <text>" "limit: <text>"', f"service resume {root} extend <duration>")


QUESTIONS = (
    QuestionRecord(id="store", prompt="which?", choices=("redis", "it's in memory"), job_id=ROOT),
    QuestionRecord(id="limit", prompt="how many?", job_id=ROOT),
)


@pytest.mark.ruling("F5.whole", "L6")
async def test_an_answer_that_is_not_whole_is_refused_with_the_complete_line(
    office: Office, kept: list[ResumeOrder]
) -> None:
    """What is missing or wrong, `policy/test_answers.py` says."""
    number = office.hub.pull()
    bind(office, number)
    asked = seeds.round_(questions=QUESTIONS, opened_at=time.time(), expires_at=time.time() + 60)
    seeds.write(office.service, asked, seeds.event(2, kind="round_opened"))
    await office.turns()
    comment = office.hub.comment(as_="ann", number=number, body="/service resume answer --other store: big")
    await heard(office)
    assert answers(office, number) == [f"comment-{comment}-refusal"]
    refusal = office.hub.bodies(number)[-1]
    assert "nothing answers `limit`" in refusal
    assert f"\n/service resume {ROOT} answer 'store: big' \"limit: <text>\" --other\n" in refusal
    assert kept == []


@pytest.mark.ruling("F5.whole")
async def test_what_is_meant_goes_on_to_the_tree(office: Office) -> None:
    """There is no Temporal here: the order passes the rules, and waits."""
    number = office.hub.pull()
    bind(office, number)
    asked = seeds.round_(questions=QUESTIONS, opened_at=time.time(), expires_at=time.time() + 60)
    seeds.write(office.service, asked, seeds.event(2, kind="round_opened"))
    await office.turns()
    meant = ("--partial store: redis", "--other store: big\nlimit: 5", "--partial --other store: big")
    bodies = [f"/service resume answer {text}" for text in (*meant, "'store: redis' 'limit: 5'")]
    comments = [office.hub.comment(as_="ann", number=number, body=body) for body in bodies]
    await heard(office)
    assert answers(office, number) == []
    taken = [threads.comment(office.session.store, comment) for comment in comments]
    assert [comment and comment.state for comment in taken] == [threads.TAKEN] * len(comments)


@pytest.mark.ruling("F5.whole", "L6")
async def test_the_lines_for_several_pauses_keep_what_was_written(office: Office) -> None:
    """Only the job was missing."""
    lines = {
        "answer --other store: big\nLimit: 5": "answer 'store: big' 'limit: 5' --other",
        "answer --partial limit: 5": "answer 'limit: 5' --partial",
        "answer 5": 'answer "store: <text>" "limit: <text>"',
        "extend 3h": "extend 3h",
        "retry": 'answer "store: <text>" "limit: <text>"',
    }
    number = office.hub.pull()
    for root in (ROOT, OTHER):
        bind(office, number, root)
        asked = seeds.round_(
            root, questions=QUESTIONS, opened_at=time.time(), expires_at=time.time() + 60, commands=commands(root)
        )
        seeds.write(office.service, asked, seeds.event(2, root, kind="round_opened"))
    await office.turns()
    for text in lines:
        office.hub.comment(as_="ann", number=number, body=f"/service resume {text}")
    await heard(office)
    refusals = office.hub.bodies(number)[-len(lines) :]
    for refusal, line in zip(refusals, lines.values(), strict=True):
        assert "name the job" in refusal
        for root in (ROOT, OTHER):
            assert f"\n/service resume {root} {line}\n" in refusal


@pytest.mark.ruling("L6")
async def test_a_mistyped_verb_is_put_right_in_the_whole_line(office: Office) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    lines = {
        "answr store: redis\nlimit: 5": "answer 'store: redis' 'limit: 5'",
        "answr --other 'store: big' 'limit: 5'": "answer --other 'store: big' 'limit: 5'",
        "extned 3h": "extend 3h",
        "answr": "answer",
    }
    for text in lines:
        office.hub.comment(as_="ann", number=number, body=f"/service resume {text}")
    await heard(office)
    for refusal, line in zip(office.hub.bodies(number)[-len(lines) :], lines.values(), strict=True):
        assert f"\n/service resume {ROOT} {line}\n" in refusal


class TestRetry:
    @pytest.fixture
    def settings(self) -> str:
        return 'commands = ["retry"]'

    @pytest.fixture
    def retried(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
        """Record the jobs that run again, with actor and request id."""
        ordered: list[tuple[str, str, str]] = []

        async def retry(_: Service, job_id: str, *, actor: str, request_id: str = "") -> trees.RetryAnswer:
            ordered.append((job_id, actor, request_id))
            return trees.RetryAnswer(job_id=job_id, reopened=True)

        monkeypatch.setattr(trees, "retry", retry)
        return ordered

    @pytest.mark.ruling("L4", "D4")
    async def test_a_leg_of_a_blocked_tree_runs_again(
        self, office: Office, retried: list[tuple[str, str, str]]
    ) -> None:
        """A blocked tree counts as over for its comments; its repository is still read while comments may retry."""
        number = office.hub.pull()
        bind(office, number)
        over = seeds.task(state=TaskState.BLOCKED, revision=2, reason="leg a failed", ended_at=2.0)
        seeds.write(office.service, over, seeds.event(2, kind="task_blocked"))
        await office.turns()
        comment = office.hub.comment(as_="ann", number=number, body=f"/service retry {ROOT}.1")
        office.hub.comment(as_="bob", number=number, body=f"/service retry {ROOT}.1")
        await heard(office)
        assert retried == [(f"{ROOT}.1", "ann, on GitHub", f"comment-{comment}-0")]
        assert office.hub.reactions(comment) == [("helper", "eyes"), ("helper", "+1")]

    @pytest.mark.ruling("L4", "L5")
    async def test_a_job_of_another_thread_does_not(self, office: Office, retried: list[tuple[str, str, str]]) -> None:
        number, elsewhere = office.hub.pull(), office.hub.pull("other-topic")
        bind(office, number)
        bind(office, elsewhere, OTHER)
        await office.turns()
        office.hub.comment(as_="ann", number=elsewhere, body=f"/service retry {ROOT}")
        await heard(office)
        assert retried == []
        assert "discussed elsewhere" in office.hub.bodies(elsewhere)[-1]
