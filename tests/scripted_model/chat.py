"""The protocol of kimi."""

import json
import time
from collections.abc import Iterator

from tests.scripted_model.wire import Answer, Asked, Event, Json, Protocol, new_id, openai_refusal, pieces, text_of


class Chat(Protocol):
    name, path = "chat", "/chat/completions"

    def read(self, body: Json, into: Asked) -> None:
        for message in body.get("messages") or []:
            if message.get("role") == "user":
                text = text_of(message.get("content"))
                if not text.lstrip().startswith(("<system-reminder>", "<system>")):
                    into.user_said(text)
            elif message.get("role") == "assistant":
                into.calls += len(message.get("tool_calls") or [])
            elif message.get("role") == "tool":
                into.outputs.append(text_of(message.get("content")))
        for tool in body.get("tools") or []:
            function = tool.get("function") or {}
            into.tools[function.get("name") or tool["type"]] = function
        into.effort = body.get("reasoning_effort") or (body.get("thinking") or {}).get("type")

    def whole(self, answer: Answer) -> Json:
        choice = {"index": 0, "message": _message(answer), "finish_reason": _finish(answer)}
        return _head(answer, "chat.completion") | {"choices": [choice], "usage": _usage(answer.usage)}

    def stream(self, answer: Answer, asked: Asked) -> Iterator[Event]:
        head, usage = _head(answer, "chat.completion.chunk"), _usage(answer.usage)
        wanted = (asked.body.get("stream_options") or {}).get("include_usage")
        for delta in _deltas(answer):
            yield None, head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        last: Json = {"index": 0, "delta": {}, "finish_reason": _finish(answer)}
        if usage and not wanted:
            last["usage"] = usage
        yield None, head | {"choices": [last]}
        if usage and wanted:
            yield None, head | {"choices": [], "usage": usage}
        yield None, "[DONE]"

    def refusal(self, status: int, message: str, kind: str | None = None) -> Json:
        return openai_refusal(status, message, kind)

    def broken(self, message: str) -> Event:
        return None, self.refusal(500, message)


def _head(answer: Answer, kind: str) -> Json:
    return {"id": new_id("chatcmpl"), "object": kind, "created": int(time.time()), "model": answer.model}


def _message(answer: Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.text}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if call := answer.call:
        function = {"name": call.name, "arguments": json.dumps(call.input)}
        message["tool_calls"] = [{"index": 0, "id": call.id, "type": "function", "function": function}]
    return message


def _deltas(answer: Answer) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    if answer.reasoning:
        yield {"reasoning_content": answer.reasoning}
    for piece in pieces(answer.text or ""):
        yield {"content": piece}
    if call := answer.call:
        begun = {"index": 0, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [begun]}
        for piece in pieces(json.dumps(call.input)):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.call else "stop"


def _usage(usage: dict[str, int] | None) -> Json | None:
    """Return the usage as kimi's service does: cached tokens are part of the input, and listed twice."""
    return usage and {
        "prompt_tokens": usage["input"],
        "completion_tokens": usage["output"],
        "total_tokens": usage["input"] + usage["output"],
        "cached_tokens": usage["cached"],
        "prompt_tokens_details": {"cached_tokens": usage["cached"]},
        "completion_tokens_details": {"reasoning_tokens": usage["reasoning"]},
    }
