"""Tests of the scripted model's answers in each protocol, streamed and whole."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.scripted_model import ScriptedModel
from tests.scripted_model.scenarios import Play

PATHS = {"responses": "/v1/responses", "messages": "/v1/messages", "chat": "/v1/chat/completions"}
SCHEMA = {"type": "object", "properties": {"path": {}, "content": {}}}
TOOLS: dict[str, dict[str, Any]] = {
    "responses": {"type": "function", "name": "Write", "parameters": SCHEMA},
    "messages": {"name": "Write", "input_schema": SCHEMA},
    "chat": {"type": "function", "function": {"name": "Write", "parameters": SCHEMA}},
}
SCENARIOS: dict[str, list[dict[str, Any]]] = {
    "make": [{"reasoning": "hm", "text": "First.", "write_file": {"path": "a", "content": "${cwd}"}}, {"text": "Made."}]
}


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(SCENARIOS) as model:
        yield model


def ask(model: ScriptedModel, protocol: str, prompt: str, **more: Any) -> httpx.Response:
    turns = [{"role": "user", "content": f"Current working directory: /here\n{prompt}"}, *more.pop("turns", ())]
    given = "input" if protocol == "responses" else "messages"
    body = {"model": "some", "tools": [TOOLS[protocol]], given: turns} | more
    return httpx.post(model.url() + PATHS[protocol], json=body, timeout=60)


def event_data(answer: httpx.Response) -> list[Any]:
    """Return the data of all events."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_step_is_sent_whole_or_in_events_with_its_call_and_its_cost(
    model: ScriptedModel, protocol: str, stream: bool
) -> None:
    answer = ask(model, protocol, "[[fake:make]]", stream=stream)
    assert answer.status_code == 200
    text = json.dumps(event_data(answer) if stream else answer.json())
    assert "hm" in text
    assert "First." in text
    assert "/here/a" in text
    assert {"responses": '"input_tokens": 1000', "messages": '"input_tokens": 570', "chat": '"prompt_tokens": 1000'}[
        protocol
    ] in text
    noted = model.requests()[-1]
    assert (noted["protocol"], noted["step"], noted["call"], noted["cwd"]) == (protocol, 0, "Write", "/here")


def echo(prompt: str) -> Play:
    output = yield {"run": f"look at {prompt.split()[-1]}"}
    yield {"text": f"It shows {output}."}


OFFERED: dict[str, Any] = {"name": "Bash", "parameters": {"properties": {"command": {}}}}
ENDED: dict[str, dict[str, Any]] = {
    "responses": {"type": "function_call_output", "output": "seven"},
    "messages": {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "seven"}]}]},
    "chat": {"role": "tool", "content": "seven"},
}


@pytest.mark.parametrize("protocol", PATHS)
def test_a_computed_scenario_knows_the_prompt_and_the_output_of_its_calls(model: ScriptedModel, protocol: str) -> None:
    model.scenarios["echo"] = echo
    tools = [{"type": "function", "function": OFFERED} if protocol == "chat" else OFFERED | {"type": "function"}]
    assert "look at this" in ask(model, protocol, "[[fake:echo]] this", tools=tools).text
    turns = [CALLED[protocol], ENDED[protocol]]
    for more in ([], turns):
        assert "It shows seven." in ask(model, protocol, "[[fake:echo]] this", tools=tools, turns=[*turns, *more]).text


CALLED: dict[str, dict[str, Any]] = {
    "responses": {"type": "function_call", "name": "Write", "arguments": "{}"},
    "messages": {"role": "assistant", "content": [{"type": "tool_use", "name": "Write", "input": {}}]},
    "chat": {"role": "assistant", "tool_calls": [{"function": {"name": "Write", "arguments": "{}"}}]},
}


@pytest.mark.parametrize("protocol", PATHS)
def test_after_a_call_the_next_step_comes_and_comes_again(model: ScriptedModel, protocol: str) -> None:
    for calls in (1, 1, 2):
        assert "Made." in ask(model, protocol, "[[fake:make]]", turns=[CALLED[protocol]] * calls).text


@pytest.mark.parametrize("protocol", PATHS)
def test_a_fault_is_an_error_of_the_protocol_and_passes_when_it_was_met_often_enough(
    model: ScriptedModel, protocol: str
) -> None:
    model.scenarios[f"once-{protocol}"] = model.scenarios["flaky-429"]
    first, second = (ask(model, protocol, f"[[fake:once-{protocol}]]") for _ in range(2))
    assert (first.status_code, first.headers["retry-after"]) == (429, "1")
    assert first.json()["error"]["message"] == "scripted rate limit"
    assert "service_result" in second.text


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("scenario", ["close", "truncate"])
def test_a_connection_may_break_before_or_within_an_answer(model: ScriptedModel, protocol: str, scenario: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        ask(model, protocol, f"[[fake:{scenario}]]", stream=True)


def test_a_scenario_that_is_not_there_is_refused(model: ScriptedModel) -> None:
    assert ask(model, "chat", "[[fake:nowhere]]").status_code == 400
