"""People's words to a pause, from any surface: in prompts they are fenced data only (rulings E6, L11)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import cases
from tests.fenced import frame, said_in
from workflows.contract.models import Action
from workflows.model.briefs import Answer, BudgetLine, ContinuationBrief
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.states import Continuation
from workflows.model.workers import Assignment, Worker
from workflows.policy.prompts.continuation import render_continuation
from workflows.policy.prompts.task import render_task

WORD = "peopleswords"
BUDGET = BudgetLine(
    jobs=1,
    jobs_cap=64,
    depth=1,
    depth_cap=8,
    elapsed_seconds=1.0,
    wall_clock_seconds=7200.0,
    tokens=0,
    token_budget=0,
    cost_usd=0.0,
    cost_budget_usd=0.0,
)
WORKER = Worker(name="scout", runtime="shell")
TEXTS = st.text(alphabet=st.sampled_from(["`", "~", "\n", "\r", "\u2028", "#", " ", "x", ">", "<", "-"]), max_size=30)


def check_fenced(prompt: str, times: int) -> None:
    inside = [text for text in said_in(prompt) if WORD in text]
    assert (len(inside), WORD in frame(prompt)) == (times, False)


@pytest.mark.ruling("E6", "L11")
@given(TEXTS, TEXTS)
@settings(max_examples=cases(30, 500))
def test_answers_and_instructions_are_fenced(before: str, after: str) -> None:
    words = f"{before}{WORD}{after}"
    brief = ContinuationBrief(
        flavour=Continuation.ANSWERED,
        goal=Text(inline="goal"),
        assignment=Text(inline="part"),
        parent_job_id="job-0123456789ab",
        answers=(Answer(id="q", question="which?", text=words),),
        guidance=words,
        orders=(words,),
        budget=BUDGET,
    )
    check_fenced(render_continuation(brief, {}), 3)
    run = JobRun(
        job_id="job-0123456789ab",
        root_job_id="job-0123456789ab",
        task_id="task-0123456789ab",
        repo="acme/shop",
        assignment=Assignment(worker=WORKER, action=Action.ASK, prompt=Text(inline="do it")),
        guidance=(words,),
    )
    check_fenced(render_task(run, "do it", "contract"), 1)
