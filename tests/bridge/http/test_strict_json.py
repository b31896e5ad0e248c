"""Ruling J3, case by case."""

import re
import time
from typing import Any

import httpx
import pytest

from bridge.http.wire.errors import InvalidJsonError
from bridge.http.wire.strict_json import DEPTH, decode
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.conftest import caller, scout

pytestmark = pytest.mark.ruling("J3")

ASK = "/v1/agents/scout/ask"
JSON = {"Content-Type": "application/json"}


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"{}", {}),
        (b' {"a": [1, -2.5, "\xc3\xa9", null, true]} ', {"a": [1, -2.5, "é", None, True]}),
        (b'{"a": {"b": 1}, "c": {"b": 1}}', {"a": {"b": 1}, "c": {"b": 1}}),
        (b'"\\ud83d\\ude00"', "😀"),
    ],
)
def test_what_can_be_meant_in_one_way_is_read(body: bytes, value: Any) -> None:
    assert decode(body) == value


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": 1, "a": 1}', "'a' occurs twice"),
        (b'{"x": [{"a": 1, "b": 2, "a": 3}]}', "'a' occurs twice"),
        (b'{"a": 1, "\\u0061": 2}', "'a' occurs twice"),
        (b"{} {}", "not one JSON value"),
        (b"{},", "not one JSON value"),
        (b"   ", "not one JSON value"),
        (b"{'a': 1}", "not one JSON value"),
        (b'{"a": 1,}', "not one JSON value"),
        (b'{"a": 01}', "not one JSON value"),
        (b'{"a": "\x01"}', "not one JSON value"),
        (b"\xef\xbb\xbf{}", "not one JSON value"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'["\\ude00\\ud83d"]', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b'["\\u0000"]', "U+0000"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"[1e999]", "too large"),
        (b"[" + b"9" * 5000 + b"]", "number"),
        (nested(DEPTH + 1), f"more than {DEPTH} levels"),
        (nested(800), f"more than {DEPTH} levels"),
        (b"[" * 2**20, "levels"),
        (b'{"a":' * 2**17, "levels"),
    ],
)
def test_what_could_be_meant_in_two_ways_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(InvalidJsonError, match=re.escape(why)):
        decode(body)


@pytest.mark.parametrize(("text", "number"), [(b"1.0", "1"), (b"-2e3", "-2000"), (b"1.5", "1.5"), (b"1e300", "1e+300")])
def test_a_number_is_an_integer_whenever_its_value_is_one(text: bytes, number: str) -> None:
    """JSON has one kind of number, and JSON Schema's integer is any without a fraction."""
    assert repr(decode(text)) == number


def test_the_deepest_that_is_taken() -> None:
    assert decode(nested(DEPTH))


def test_a_body_of_many_members_is_looked_through_in_one_go() -> None:
    """A hundred times the members would take ten thousand times as long if the check were quadratic."""
    members = ",".join(f'"m{number}":0' for number in range(200_000))
    small = ",".join(f'"m{number}":0' for number in range(2_000))

    def seconds(text: str) -> float:
        begun = time.thread_time()  # other processes' work does not count
        with pytest.raises(InvalidJsonError, match="twice"):
            decode(f'{{{text},"m0":0}}'.encode())
        return time.thread_time() - begun

    floor = min(seconds(small) for _ in range(3))
    assert min(seconds(members) for _ in range(3)) < 2_000 * floor


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b'{"message": "m", "message": "m", "repo": "acme/shop"}', JSON, 400, "occurs twice"),
        (b'{"Message": "m", "repo": "acme/shop"}', JSON, 400, "message is required; Message is not a field"),
        (b'{"message": "m", "repo": 1}', JSON, 400, "repo must be a valid string"),
        (b'{"message": "m", "repo": "acme/shop", "extra": 1}', JSON, 400, "extra is not a field"),
        (b"[]", JSON, 400, "the body must be a JSON object"),
        (b"", JSON, 400, "a JSON object is required"),
        (b"", {}, 400, "a JSON object is required"),
        (b"null", JSON, 400, "the body must be a JSON object"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "Content-Type is 'text/plain'"),
        (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "must be application/json"),
        (b"{}", {"Content-Type": "application/json; charset=utf-16"}, 415, "in UTF-8"),
        (b"{}", {}, 415, "Content-Type is missing"),
        (b"{}", JSON | {"Content-Encoding": "gzip"}, 415, "compressed"),
        (b"{}", {"Content-Type": "application/json; charset=UTF-8"}, 400, "message is required"),
    ],
)
async def test_every_fault_of_a_body_is_a_400_or_a_415_and_says_what_it_is(
    call: httpx.AsyncClient, body: bytes, headers: dict[str, str], status: int, why: str
) -> None:
    answer = await call.post(ASK, content=body, headers=headers)
    assert (answer.status_code, why in answer.json()["error"]) == (status, True), answer.text


async def test_an_empty_body_is_no_body_also_in_chunks(service: Service, call: httpx.AsyncClient) -> None:
    scout(service)

    async def nothing() -> Any:
        yield b""

    kill = "/v1/jobs/job-0123456789ab/kill"
    for sent in (b"", nothing(), b"{}"):
        answer = await call.post(kill, content=sent, headers=JSON)
        assert answer.status_code == 404, answer.text
    assert (await call.post(kill, content=b'{"now": "yes"}', headers=JSON)).status_code == 400


async def test_a_megabyte_of_brackets_is_answered(call: httpx.AsyncClient) -> None:
    answer = await call.post(ASK, content=b"[" * 2**20, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")


@pytest.mark.parametrize(
    "query", ["stat=running", "limit=1&limit=2", "limit=0", "limit=201", "roots=maybe", "repo=%00"]
)
async def test_query_parameters_are_those_that_are_declared(call: httpx.AsyncClient, query: str) -> None:
    answer = await call.get(f"/v1/jobs?{query}")
    assert answer.status_code == 400, answer.text


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("word", [b"redacted-0123456789abcdef0123", b"\\u0072edacted-0123456789abcdef0123"])
def test_a_caller_s_word_for_a_secret_is_put_back_for_nobody(word: bytes) -> None:
    """Lists show such words, and tokens that may only ask can read lists."""
    body = b'{"message": "say ' + word + b'", "payload": {"k": ["' + word + b'"]}, "%s": 1}' % word
    assert decode(body) == {"message": "say [redacted]", "payload": {"k": ["[redacted]"]}, "[redacted]": 1}


DIGITS = "9" * 5_000


@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}"])
async def test_a_number_of_five_thousand_digits_is_refused_in_words_of_ours(service: Service, number: str) -> None:
    """Python's own sentence about it names a function of Python's."""
    scout(service)
    body = f'{{"message": "m", "repo": "acme/shop", "pull_request": {number}}}'
    job, refused = f"/v1/jobs/{seeds.ROOT}", list[httpx.Response]()
    seeds.write(service, seeds.task(), seeds.job())
    asked = [("/v1/jobs", name) for name in ("limit", "pull_request", "issue", "cursor")]
    asked += [(f"{job}/log", name) for name in ("attempt", "before", "cursor", "limit")]
    asked += [(f"{job}/events", "cursor"), (f"{job}/gate", "pull_request"), (job, "wait")]
    async with caller(service) as client:
        refused.append(await client.post(ASK, content=body, headers=JSON))
        for path, name in asked:
            refused.append(await client.get(path, params={name: number}))
        refused.append(await client.get(f"{job}/events", headers={"Last-Event-ID": number}))
    for answer in refused:
        error = answer.json()["error"]
        assert answer.status_code == 400, error
        assert len(error) < 300
        assert not re.search(r"int_max_str|Exceeds the limit|parse input|sys\.", error), error
    assert refused[0].json()["error"] == f"the number {number[:40]} in the body is too large"
    assert refused[1].json()["error"] == "limit must be a whole number of fewer digits"
