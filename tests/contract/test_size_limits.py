"""The one table of bounds (ruling B6): the validator and the schema use it, exact at the boundary."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.schema import SCHEMA, fits
from tests.contract.strategies import JSON, Body
from workflows.contract.locate import KEY
from workflows.contract.schema import TEXTS
from workflows.contract.size_limits import (
    BOUNDS,
    COUNTS,
    DELEGATIONS_BYTES,
    MOST_TOKENS,
    QUESTIONS_BYTES,
    cut_to_bound,
    size,
    too_long,
)
from workflows.contract.storable import storable, storable_model, storable_value
from workflows.contract.validate import validate
from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("B6")

LEG: Body = {"id": "a", "action": "ask", "prompt": "p"}


def body_with(owner: str, name: str, value: Any) -> Body:
    """Return a result in which only this member is special."""
    body: Body = {"decision": "approved", "summary": "s", "artifact_body": "b"}
    match owner:
        case "Delegation":
            worker = {} if name == "agent" else {"agent": "x"}
            return body | {"delegations": [{**LEG, **worker, name: value}]}
        case "Ephemeral":
            return body | {"delegations": [{**LEG, "ephemeral": {"runtime": "runtime_a", name: value}}]}
        case _:
            return body | {"human_questions": [{"id": "q", "prompt": "p", name: value}]}


def faults(body: Body) -> list[str]:
    return [fault.message for fault in validate({KEY: body}).faults]


EVERY = [(owner, name, of) for owner, texts in TEXTS.items() for name, of in texts.items() if name != "timeout"]


@pytest.mark.parametrize(("owner", "name", "of"), EVERY)
def test_each_text_may_be_as_long_as_its_bound_and_no_longer(owner: str, name: str, of: str) -> None:
    bound = BOUNDS[of]
    several = name in COUNTS
    for length, allowed in ((bound.characters, True), (bound.characters + 1, False)):
        text = "x" * length
        body = body_with(owner, name, [text] if several else text)
        lines = faults(body)
        assert (lines == []) is allowed, lines
        assert fits({KEY: body}, SCHEMA) is allowed
        if not allowed and name != "worktree":
            (line,) = lines
            assert f"must be at most {bound.characters:,} characters, not {length:,}" in line
            assert name in line


@pytest.mark.parametrize(("owner", "name", "of"), [each for each in EVERY if each[2] not in ("worktree", "prompt")])
def test_bytes_are_bounded_too(owner: str, name: str, of: str) -> None:
    bound = BOUNDS[of]
    text = "x" + ("\U0001f600" if of == "artifact" else "\x01") * (bound.characters - 1)
    lines = faults(body_with(owner, name, [text] if name in COUNTS else text))
    assert f"must be at most {bound.bytes:,} bytes, not {size(text) - 2:,}" in "\n".join(lines)


@pytest.mark.parametrize("name", ["capabilities", "artifacts", "choices"])
def test_lists_have_so_many_entries_and_no_more(name: str) -> None:
    owner = next(owner for owner, texts in TEXTS.items() if name in texts)
    assert faults(body_with(owner, name, ["x"] * COUNTS[name])) == []
    (line,) = faults(body_with(owner, name, ["x"] * (COUNTS[name] + 1)))
    assert line.endswith(f"{name} must have at most {COUNTS[name]} entries, not {COUNTS[name] + 1}")


def test_so_many_delegations_and_questions_and_no_more() -> None:
    legs: list[Any] = [{**LEG, "agent": "x", "id": f"l{n}"} for n in range(COUNTS["delegations"] + 1)]
    questions: list[Any] = [{"id": f"q{n}", "prompt": "p"} for n in range(COUNTS["human_questions"] + 1)]
    body: Body = {"decision": "approved", "summary": "s"}
    assert faults({**body, "delegations": legs[:-1], "human_questions": questions[:-1]}) == []
    assert faults({**body, "delegations": legs}) == [], "a tree refuses it as too wide (ruling C1)"
    assert faults({**body, "delegations": legs, "human_questions": questions}) == [
        f"human_questions must have at most {COUNTS['human_questions']} entries, not {COUNTS['human_questions'] + 1}",
    ]


def test_the_questions_and_the_delegations_of_one_result_are_bounded_together() -> None:
    questions: list[Any] = [{"id": f"q{n}", "prompt": "p" * 1_500} for n in range(3)]
    legs: list[Any] = [
        {**LEG, "agent": "x", "id": f"l{n}", "phase": "p" * 200, "model": "m" * 200, "effort": "e" * 64}
        for n in range(256)
    ]
    lines = faults({"decision": "approved", "summary": "s", "human_questions": questions, "delegations": legs})
    assert [line.rpartition(" bytes")[0] for line in lines] == [
        f"delegations must be at most {DELEGATIONS_BYTES:,}",
        f"human_questions must be at most {QUESTIONS_BYTES:,}",
    ]
    long_prompts: list[Any] = [{**LEG, "agent": "x", "id": f"l{n}", "prompt": "p" * 100_000} for n in range(3)]
    assert faults({"decision": "approved", "summary": "s", "delegations": long_prompts}) == []


def test_a_dependency_named_again_is_one() -> None:
    legs: list[Any] = [{**LEG, "agent": "x"}, {**LEG, "agent": "x", "id": "b", "deps": ["a"] * 10_000}]
    result = validate({KEY: {"decision": "approved", "summary": "s", "delegations": legs}}).result
    assert result is not None
    assert result.delegations[1].deps == ("a",)


ANY = st.text(st.characters(exclude_categories=[]), max_size=60)


class TestStorable:
    @given(ANY)
    def test_nothing_is_left_that_no_database_takes(self, text: str) -> None:
        clean = storable(text)
        clean.encode()
        assert "\0" not in clean
        assert len(clean) == len(text)
        assert storable(clean) == clean

    @pytest.mark.parametrize("text", ["", "plain", "\u00e9\n\t\x1b", "\U0001f600"])
    def test_what_can_be_stored_stays_as_it_is(self, text: str) -> None:
        assert storable(text) == text

    @given(ANY, st.sampled_from(sorted(BOUNDS)))
    def test_what_is_cut_keeps_its_bound_and_ends_on_a_character(self, text: str, name: str) -> None:
        cut = cut_to_bound(name, text * 20)
        assert too_long(name, cut) is None
        assert storable(text * 20).startswith(cut)
        if too_long(name, storable(text)) is None:
            assert cut_to_bound(name, text) == storable(text)

    @given(JSON)
    def test_whole_values_too(self, value: Any) -> None:
        assert storable_value(value) == value
        assert storable_value({"a\0": ["\ud800", value]}) == {"a\ufffd": ["\ufffd", value]}

    def test_and_whole_models(self) -> None:
        outcome = JobOutcome(job_id="j", state=JobState.FAILED, reason="a\0b", touched_files=("\udcff.py",))
        assert storable_model(outcome) == outcome.model_copy(
            update={"reason": "a\ufffdb", "touched_files": ("\ufffd.py",)}
        )
        clean = JobOutcome(job_id="j", state=JobState.FAILED, reason="fine")
        assert storable_model(clean) == clean


def test_what_is_nested_without_end_has_a_size() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert size(value) > DELEGATIONS_BYTES


def test_sums_of_tokens_fit_a_column() -> None:
    assert MOST_TOKENS * 4_096 < 2**63


def test_sizes_are_those_of_a_history() -> None:
    assert size({"a": "\u00e9\n"}) == len(
        json.dumps({"a": "\u00e9\n"}, ensure_ascii=False, separators=(",", ":")).encode()
    )
