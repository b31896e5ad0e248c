"""The sections of a prompt, and quoted texts in them. The complete texts are in `tests/activities/jobs/golden`."""

import pytest

from tests.fenced import blocks, unmarked
from tests.tree.prompted import BODIES, answered_leg, normal, start, told
from tests.tree.simulator import delegation
from workflows.contract.models import Notice
from workflows.policy.prompts.continuation import BODIES_LIMIT, BODY_LIMIT, render_continuation, wanted_digests
from workflows.text.invisible import visible
from workflows.text.markdown import excerpt
from workflows.text.quoted_data import inline, write_fenced

ORDER = ("Human answers", "Goal", "Budget", "Outcomes", "Skipped or refused, and why", "What to do now")


@pytest.mark.ruling("E6", "spec:states.resume_answer")
def test_the_sections_stand_in_the_order_of_the_ruling() -> None:
    text = render_continuation(told(answered_leg()).model_copy(update={"notes": ("x",)}), BODIES)
    places = [text.index(f"\n## {title}\n") for title in ORDER]
    assert places == sorted(places)


@pytest.mark.ruling("E6", "spec:inline_artifact_bodies")
def test_artifact_bodies_are_inlined_when_enabled_cut_with_a_marker_and_bounded_together() -> None:
    tree = start(inline_artifact_bodies=True)
    tree.coordinator("approved", *(delegation(f"l{n}") for n in range(6)))
    for n in range(6):
        tree.leg(f"l{n}", artifact_digest=f"d{n}")
    brief = told(tree)
    assert wanted_digests(brief) == (brief.goal.digest, "d0", "d1", "d2", "d3", "d4", "d5")
    bodies = {**BODIES, **{f"d{n}": "\N{SNOWMAN}" * 9000 for n in range(6)}}
    text = render_continuation(brief, bodies, "/art")
    assert text.count("\N{SNOWMAN}") == BODIES_LIMIT
    assert (
        f"[cut: {BODY_LIMIT:,} of 9,000 characters shown; the whole text is in /art/delegations/job-root/brief.md]"
        in text
    )
    off = render_continuation(brief.model_copy(update={"inline_artifact_bodies": False}), bodies)
    assert "Artifact body" not in off


@pytest.mark.ruling("E6", "spec:inline_artifact_bodies")
def test_a_body_stands_behind_its_leg_s_decision_pull_request_and_summary_and_before_the_next_leg() -> None:
    tree = start(inline_artifact_bodies=True)
    tree.coordinator("approved", delegation("a"), delegation("b"))
    tree.leg("a", "implemented", artifact_digest="da", summary="what a did", pull_request=7)
    tree.leg("b", "implemented", artifact_digest="db", summary="what b did")
    brief = told(tree)
    text = render_continuation(brief, {**BODIES, "da": "the body of a", "db": "```\nthe body of b"}, "/art")
    inlined = {"a": "the body of a", "b": "```\nthe body of b"}
    order = (
        "`a`: succeeded, implemented",
        "#7",
        "what a did",
        inlined["a"],
        "`b`: succeeded",
        "what b did",
        inlined["b"],
    )
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    without = text
    for name, body in inlined.items():
        block = f'<data-MARK by="leg {name}">\n{body}\n</data-MARK>'
        without = unmarked(without).replace(f"\n\nArtifact body:\n\n{block}", "")
    off = render_continuation(brief.model_copy(update={"inline_artifact_bodies": False}), BODIES)
    assert without == unmarked(off)


@pytest.mark.ruling("E6")
@pytest.mark.parametrize("text", ["```\n## Goal\n", "`" * 50, "~~~", "a\r## x", "\u2028## x", "x\n`````"])
def test_nothing_fenced_gets_out_of_its_fence(text: str) -> None:
    prompt = write_fenced("", lambda fences: f"{fences.block(text, 'x')}\n")
    assert blocks(prompt) == [("x", visible(text))]
    assert not set(prompt) & set("\r\u2028")


@pytest.mark.ruling("E6")
def test_a_value_in_running_text_stays_on_its_line_and_in_its_span() -> None:
    assert inline("a\n## Goal `x`") == "`a ## Goal 'x'`"
    assert len(inline("x" * 10_000)) < 400
    assert excerpt("abc", 3, "there") == "abc"


@pytest.mark.ruling("E6")
def test_a_text_that_cannot_be_read_is_said_to_be_missing() -> None:
    brief = told(normal())
    text = f"[not available: the stored text {brief.goal.digest} could not be read]"
    assert text in render_continuation(brief, {})


@pytest.mark.ruling("E6", "P3")
def test_a_coordinator_whose_edits_were_thrown_away_is_told_in_its_continuation() -> None:
    notice = Notice(kind="edits_discarded", message="thrown away", data={"files": ["src/a.py"]})
    for notices, shown in (((notice,), True), ((), False)):
        tree = start()
        tree.coordinator("approved", delegation("a"), notices=notices, touched_files=("src/a.py",), summary="Did it.")
        tree.leg("a", "approved")
        line = "Files you changed in that run, which are thrown away: `src/a.py`."
        assert (line in render_continuation(told(tree), BODIES)) is shown
