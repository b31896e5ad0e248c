import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.strategies import HOSTILE, TEXT, Body, bodies
from tests.depth import cases
from workflows.contract.canonical import canonical, canonical_json
from workflows.contract.locate import KEY
from workflows.contract.models import ServiceResult
from workflows.contract.parse import Accepted, Rejected, read_result

GOOD: Body = {"decision": "approved", "summary": "ok"}


def whole(**members: object) -> str:
    return json.dumps({KEY: {**GOOD, **members}})


def accepted(output: str | bytes, *, after_repair: bool = False) -> Accepted:
    reading = read_result(output, after_repair=after_repair)
    assert isinstance(reading, Accepted), reading
    return reading


def rejected(output: str | bytes, *, after_repair: bool = False) -> list[str]:
    reading = read_result(output, after_repair=after_repair)
    assert isinstance(reading, Rejected), reading
    return [fault.message for fault in reading.faults]


@pytest.mark.ruling("A1")
def test_the_last_valid_candidate_counts_and_it_is_said() -> None:
    reading = accepted(whole(summary="draft") + "\n" + whole(decision="nope") + "\n" + whole(summary="final"))
    assert reading.result.summary == "final"
    (notice,) = reading.notices
    assert notice.kind == "result_ambiguous"
    assert notice.data == {"valid": 2, "later_invalid": 0}
    assert notice.message == "the output holds 2 valid results; the last one counts"


@pytest.mark.ruling("A1")
def test_one_valid_result_needs_no_notice() -> None:
    assert accepted(whole(decision="nope") + whole()).notices == ()


@pytest.mark.ruling("A1")
def test_a_later_candidate_that_is_not_valid_is_not_silently_ignored() -> None:
    output = whole(summary="draft") + whole(decision="nope") + whole()[:30]
    first, last = rejected(output)
    assert first.startswith("a valid result stands before another one, which has faults")
    assert last.startswith("the result is truncated")
    reading = accepted(output, after_repair=True)
    assert reading.result.summary == "draft"
    assert [notice.data for notice in reading.notices] == [{"valid": 1, "later_invalid": 2}]


@pytest.mark.ruling("A1")
def test_delegations_after_the_result_are_asked_about_and_not_lost() -> None:
    output = whole() + '\n{"delegations": [{"id": "a"}]}'
    assert rejected(output) == ["delegations stand after the result, outside of it: put them into the result"]
    assert accepted(output, after_repair=True).result.delegations == ()
    assert accepted(whole() + '\nMy "delegations": [] are none.').result.decision == "approved"


@pytest.mark.ruling("A4")
@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("{'service_result': {'decision': 'approved'}}", "single quotes, where JSON has double ones"),
        ('{"service_result": {decision: "approved"}}', "a key without double quotes"),
        ('{\u201cservice_result\u201d: {"decision": 1}}', "typographic quotes, where JSON has straight ones"),
        ('{"service_result": // mine\n{"decision": 1}}', "a comment, which JSON has none of, at line 1"),
        (json.dumps({"arguments": whole()}), "the result is a text with escaped quotes, in arguments"),
        (json.dumps({KEY: {"arguments": GOOD}}), 'the result is wrapped in "arguments"'),
    ],
)
def test_a_common_slip_is_named_as_what_it_is(output: str, says: str) -> None:
    (line,) = rejected(output)
    assert says in line


@pytest.mark.ruling("A7")
@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("done", "implemented"),
        ("Completed", "implemented"),
        ("request changes", "changes_requested"),
        ("LGTM", "approved"),
    ],
)
def test_a_word_for_a_decision_is_answered_with_the_decision(word: str, meant: str) -> None:
    (line,) = rejected(whole(decision=word))
    assert line.endswith(f'did you mean "{meant}"?')


@pytest.mark.ruling("A1")
def test_the_faults_are_those_of_the_last_candidate() -> None:
    assert rejected(whole(decision="first") + whole(retries=1)) == ['unknown key "retries"']


@pytest.mark.ruling("A2")
def test_a_truncated_result_is_not_completed() -> None:
    (line,) = rejected(whole()[:-1])
    assert line.startswith("the result is truncated: ")


@pytest.mark.ruling("A1")
@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("", "the output is empty"),
        (b" \n", "the output is empty"),
        ("done", "holds no JSON object with the key service_result"),
        ("set service_result", "occurs, but not as the key"),
    ],
)
def test_no_candidate_says_so(output: str | bytes, says: str) -> None:
    (line,) = rejected(output)
    assert says in line


@pytest.mark.ruling("A1")
def test_bytes_around_the_result_need_not_be_text() -> None:
    assert accepted(b"\xff\xfe\x00" + whole().encode() + b"\xc3").result.summary == "ok"
    assert accepted(b"\xef\xbb\xbf" + whole(summary="é").encode()).result.summary == "é"
    (line,) = rejected(whole().encode().replace(b"ok", b"o\xffk"))
    assert line == "summary contains a lone surrogate or a byte that is not UTF-8"


@pytest.mark.ruling("A3")
def test_after_the_repair_unknown_keys_alone_are_dropped_and_named() -> None:
    output = json.dumps({KEY: {**GOOD, "mood": 1, "human_questions": [{"id": "q", "prompt": "p", "why": 1}]}, "x": 1})
    assert len(rejected(output)) == 3
    reading = accepted(output, after_repair=True)
    assert reading.result.human_questions[0].prompt == "p"
    (notice,) = reading.notices
    assert notice.kind == "result_unknown_keys_dropped"
    assert notice.data == {"keys": ["human_questions[0].why", "mood", 'unknown key "x" beside service_result']}


@pytest.mark.ruling("A3")
def test_after_the_repair_any_other_fault_still_refuses() -> None:
    assert rejected(whole(mood=1, needs=[1]), after_repair=True) == [
        "needs[0] must be a string or an object, not a number",
        'unknown key "mood"',
    ]


@pytest.mark.ruling("A3")
def test_a_result_without_faults_comes_before_one_with_dropped_keys() -> None:
    reading = accepted(whole(summary="clean") + whole(mood=1), after_repair=True)
    assert reading.result.summary == "clean"
    assert [notice.data for notice in reading.notices] == [{"valid": 1, "later_invalid": 1}]


def test_canonical_json_has_the_fields_in_the_order_of_the_spec() -> None:
    leg = {
        "prompt": "p",
        "retry": 0,
        "deps": [],
        "model": None,
        "agent": "x",
        "id": "a",
        "action": "ask",
        "quorum": None,
    }
    result = accepted(
        json.dumps({KEY: {"delegations": [leg], "needs": None, "summary": "é", "decision": "approved"}})
    ).result
    assert canonical_json(result) == (
        '{"service_result":{"decision":"approved","summary":"é","findings":[],"changes_made":[],"tests_run":[],"needs":[],'
        '"delegations":[{"id":"a","agent":"x","action":"ask","prompt":"p"}]}}'
    )


@pytest.mark.ruling("A4")
def test_the_deepest_result_that_is_accepted_can_be_written() -> None:
    deep: object = "x"
    for _ in range(100):
        deep = [deep]
    result = accepted(whole(artifact_body=deep)).result
    assert accepted(canonical_json(result)).result == result
    assert rejected(whole(artifact_body=[deep]))[0].endswith("is nested deeper than 100 levels")


@pytest.mark.ruling("A6")
@given(bodies())
@settings(max_examples=cases(20, 150))
def test_canonical_json_reads_back_as_the_same_result(body: Body) -> None:
    result = accepted(json.dumps({KEY: body})).result
    assert accepted(canonical_json(result)) == Accepted(result)
    assert list(canonical(result)) == [name for name in ServiceResult.model_fields if name in canonical(result)]
    written = body.get("artifact_body")
    blank = isinstance(written, str) and not written.strip()
    assert canonical(result).get("artifact_body") == (None if blank else written)


@pytest.mark.ruling("A1")
@given(st.one_of(st.binary(), st.lists(st.one_of(TEXT, HOSTILE)).map("".join)), st.booleans())
@settings(max_examples=cases(30, 300))
def test_nothing_crashes_the_reader(output: str | bytes, after_repair: bool) -> None:
    reading = read_result(output, after_repair=after_repair)
    assert isinstance(reading, Accepted) or reading.faults


@pytest.mark.ruling("A1")
@given(bodies(), st.data())
@settings(max_examples=cases(20, 150))
def test_no_damage_to_one_byte_crashes_the_reader(body: Body, data: st.DataObject) -> None:
    raw = bytearray(json.dumps({KEY: body}, ensure_ascii=False).encode())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    reading = read_result(bytes(raw))
    assert isinstance(reading, Accepted) or reading.faults


@pytest.mark.ruling("A1")
@pytest.mark.parametrize("again", ["{", '{"a":', '{"service_result":', '[{"service_result": {"x": ['])
def test_what_is_read_is_read_in_linear_time(again: str) -> None:
    """Measured in CPU time, which excludes other load of the machine."""
    begun = time.process_time()
    assert rejected(again * (10 * 2**20 // len(again)))
    assert time.process_time() - begun < 20
