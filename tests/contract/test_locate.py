import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.strategies import HOSTILE, TEXT, Body, bodies
from tests.depth import cases
from workflows.contract.locate import KEY, Broken, Candidate, locate

BODY = {"decision": "approved", "summary": "ok"}
WHOLE = json.dumps({KEY: BODY})


def values(text: str) -> list[object]:
    return [found.value[KEY] for found in locate(text) if isinstance(found, Candidate)]


@pytest.mark.ruling("A1")
@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"```json\n{WHOLE}\n```",
        f"Done.\n\n{WHOLE}\n\nThat is all.",
        json.dumps({KEY: BODY}, indent=2),
        f"It's a 5\" disk {{ and {WHOLE}",
        f'an open {{" here {WHOLE}',
        f'an open {{"a": and {WHOLE}',
        f'an open {{"a": [1, {WHOLE}',
        f'{{"a": "b {WHOLE}',
        f"[[[{WHOLE}",
        f"}}}}]]{WHOLE}",
        f"C:\\{WHOLE}",
        f'"{WHOLE}"',
        f'\\"{WHOLE}',
        f'{{"service_result":{WHOLE}',
        f'{{"service_result": {{"findings": [{WHOLE}',
        f'the shape {{"service_result": ...}} and {WHOLE}',
        f'the shape {{"service_result": {{...}}}} and {WHOLE}',
        '{"type": "object", "properties": {"service_result": {"type": "object"}}'.replace("service_result", "x")
        + "}"
        + WHOLE,
        json.dumps({"type": "result", "usage": {"in": 1}, "message": {KEY: BODY}}),
        json.dumps([1, {"a": [{KEY: BODY}]}]),
        json.dumps({KEY: {KEY: {KEY: BODY}}}),
        '{"a":' * 5_000 + WHOLE,
        "{" * 5_000 + WHOLE,
        f'{{"service_result":{WHOLE} and so on}}',
        f'{{"service_result": {{"findings": [{WHOLE} and so on}}}}',
        '{"service_result":' * 5_000 + WHOLE,
    ],
)
def test_the_result_is_found_whatever_is_around_it(text: str) -> None:
    assert values(text) == [BODY]


@pytest.mark.ruling("A1")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        json.dumps(BODY),
        json.dumps({"a": KEY}),
        json.dumps({"message": WHOLE}),
        json.dumps([KEY]),
        "{'service_result': {}}",
        'the key "service_result": is missing',
        'the shape {"service_result": ...}',
        "{" * 10_000,
    ],
)
def test_an_object_without_the_key_is_no_candidate(text: str) -> None:
    assert locate(text) == ()


@pytest.mark.ruling("A1")
@pytest.mark.parametrize("empty", ["{}", "{ }", "{\n}", "[{}, {}]"])
def test_empty_objects_are_objects(empty: str) -> None:
    text = f'{{"service_result":{{"service_result": {{"artifact_body": {empty}}}}}'
    assert values(text) == [{"artifact_body": json.loads(empty)}]


@pytest.mark.ruling("A1")
def test_the_key_need_not_come_first() -> None:
    whole = {"type": "result", "usage": {"a": [{"b": "}"}]}, KEY: BODY}
    (candidate,) = locate(f"prose {json.dumps(whole)} prose")
    assert isinstance(candidate, Candidate)
    assert candidate.value == whole


@pytest.mark.ruling("A1")
def test_what_is_inside_a_candidate_is_its_data() -> None:
    outer = {KEY: {**BODY, "findings": [{"example": {KEY: {"decision": "failed"}}}]}}
    assert values(json.dumps(outer)) == [outer[KEY]]
    assert values(json.dumps({"echo": {KEY: 1}, KEY: BODY})) == [BODY]
    assert values(json.dumps(outer)[:-1]) == []


@pytest.mark.ruling("A1")
@pytest.mark.parametrize("stop", ["\\x [", '"x\n" ', f'"x {WHOLE} " '])
def test_what_can_no_longer_become_json_claims_nothing_after_it(stop: str) -> None:
    text = f'{{"service_result": {{"a": {stop}{WHOLE}, {WHOLE}]'
    assert values(text) == [BODY] * text.count(WHOLE)


@pytest.mark.ruling("A1")
def test_candidates_come_in_the_order_they_begin() -> None:
    assert values('{"service_result": 1} x {"service_result": 2}{"service_result": 3}') == [1, 2, 3]


@pytest.mark.ruling("A2")
@pytest.mark.parametrize(
    ("cut", "where"),
    [
        ('{"service_result": {"decision": "appr', "37 bytes of it, inside decision;"),
        ('{"service_result": {"decision": "approved", "summary": "a {', "inside summary;"),
        ('{"service_result": {"findings": ["a", {"title": "b", "x": [1, 2', "inside findings[1].x[1];"),
        ('{"service_result": {"findings": ["a"], "delegations": [{"id": "a"}, ', "inside delegations[1];"),
        ('{"service_result": {"retry": 1', "inside retry;"),
        ('{"service_result": {"ok": tru', "inside ok;"),
        ('{"service_result": {"ok": "\\u00e', "inside ok;"),
        ('{"service_result": {"ok": "\\', "inside ok;"),
        (WHOLE[:-1], f"{len(WHOLE) - 1} bytes of it;"),
        (WHOLE[:-1] + "\n```", "not valid JSON"),
        ('{"service_result": {', "20 bytes of it;"),
        ('{"service_result":', "18 bytes of it;"),
        ('{"service_result": {"summary": "é', "34 bytes of it, inside summary;"),
    ],
)
def test_a_truncated_object_says_how_far_it_got(cut: str, where: str) -> None:
    (broken,) = locate(f"prose {cut}")
    assert isinstance(broken, Broken)
    assert where in broken.message
    assert ("truncated" in broken.message) == (where != "not valid JSON")


@pytest.mark.ruling("A2")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (WHOLE[:-2] + ",}}", "a comma before }"),
        (WHOLE.replace(', "summary"', ',\n// the end\n "summary"'), "a comment, which JSON has none of, at line 2"),
        (WHOLE.replace('"summary"', "summary"), "a key without double quotes"),
        (WHOLE.replace('"summary"', "'summary'"), "single quotes"),
        (WHOLE.replace('"summary"', "\u201csummary\u201d"), "typographic quotes"),
        (WHOLE.replace('"ok"', "\u201cok\u201d"), "typographic quotes"),
        (WHOLE.replace('": "', '" "', 1), "delimiter"),
        (WHOLE.replace("ok", "o\nk"), "(write \\n or \\t)"),
        (WHOLE.replace("ok", 'an "ok" one'), "a quote inside a string"),
        (WHOLE.replace("ok", "\\x"), "escape"),
        ('{"service_result":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"service_result":{"a":' * 50_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_says_why(text: str, says: str) -> None:
    (broken,) = locate(text)
    assert isinstance(broken, Broken)
    assert says in broken.message


PROSE = st.one_of(TEXT, st.lists(st.one_of(TEXT, HOSTILE, st.sampled_from(list('{}[]":,\\ \n')))).map("".join))


@pytest.mark.ruling("A1")
@given(bodies(), PROSE, TEXT, st.sampled_from([None, 2]), st.booleans())
@settings(max_examples=cases(30, 300))
def test_any_result_in_any_prose_is_found(
    body: Body, before: str, after: str, indent: int | None, ascii_only: bool
) -> None:
    whole = json.dumps({KEY: body}, indent=indent, ensure_ascii=ascii_only)
    assert body in values(before + whole + after.lstrip(" \t\r\n,]}"))


@pytest.mark.ruling("A1")
@given(bodies(), bodies(), st.data())
@settings(max_examples=cases(20, 200))
def test_a_result_after_a_draft_cut_anywhere_is_found(draft: Body, body: Body, data: st.DataObject) -> None:
    first = json.dumps({KEY: draft})
    cut = data.draw(st.integers(0, len(first)))
    assert values(first[:cut] + json.dumps({KEY: body}))[-1] == body


@pytest.mark.ruling("A1")
@given(bodies(), st.recursive(st.just(None), lambda inner: st.tuples(TEXT, inner, st.booleans()), max_leaves=5))
def test_a_result_in_any_envelope_is_found(body: Body, shape: tuple[str, object, bool] | None) -> None:
    value: object = {KEY: body}
    while shape is not None:
        name, inner, in_list = shape
        value = [name, value] if in_list else {f"x{name}": value, "and": ["{", {"more": name}]}
        shape = inner  # type: ignore[assignment]
    assert values(json.dumps(value)) == [body]


@pytest.mark.ruling("A1", "A2")
@given(st.lists(st.one_of(HOSTILE, st.sampled_from(list('{}[]":,\\ \n1a')), st.just(WHOLE))).map("".join))
@settings(max_examples=cases(50, 500))
def test_every_complete_object_is_what_a_plain_search_finds(text: str) -> None:
    assert {json.dumps(value) for value in values(text)} <= set(every_object(text))


def every_object(text: str) -> list[str]:
    """Find the objects the slow way: try to parse one at every brace."""
    objects = []
    for start, char in enumerate(text):
        try:
            value = json.JSONDecoder().raw_decode(text, start)[0] if char == "{" else None
        except ValueError:
            continue
        if isinstance(value, dict) and KEY in value:
            objects.append(json.dumps(value[KEY]))
    return objects


@pytest.mark.ruling("A1")
def test_of_very_many_candidates_the_last_thousand_are_looked_at() -> None:
    numbers = values("\n".join(json.dumps({KEY: number}) for number in range(1_002)))
    assert numbers == list(range(2, 1_002))
