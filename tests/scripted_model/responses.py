"""The protocol of codex."""

import itertools
import json
import time
from collections.abc import Iterator

from tests.scripted_model.wire import Answer, Asked, Event, Json, Protocol, new_id, openai_refusal, pieces, text_of

OF_THE_PROGRAM = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
)
"""Beginnings of messages that the program writes in the user's name."""
CALLS = ("function_call", "custom_tool_call", "local_shell_call")


class Responses(Protocol):
    name, path = "responses", "/responses"

    def read(self, body: Json, into: Asked) -> None:
        given = body.get("input") or []
        items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
        offered = list(body.get("tools") or [])
        for item in items:
            kind = item.get("type", "message")
            if kind == "message" and item.get("role") == "user":
                text = text_of(item.get("content"))
                if not text.lstrip().startswith(OF_THE_PROGRAM):
                    into.user_said(text)
            elif kind in CALLS:
                into.calls += 1
            elif kind.endswith("_output"):
                into.outputs.append(text_of(item.get("output")))
            elif kind == "additional_tools":
                offered += item.get("tools") or []
        into.tools.update(_by_name(offered))
        into.effort = (body.get("reasoning") or {}).get("effort")

    def whole(self, answer: Answer) -> Json:
        return {
            "id": new_id("resp"),
            "object": "response",
            "status": "completed",
            "model": answer.model,
            "output": _items(answer),
            "usage": _usage(answer.usage),
        }

    def stream(self, answer: Answer, asked: Asked) -> Iterator[Event]:
        numbers, items = itertools.count(), _items(answer)
        begun: Json = {"id": new_id("resp"), "object": "response", "created_at": int(time.time())}
        begun |= {"model": answer.model, "status": "in_progress", "output": [], "usage": None}
        ended = begun | {"status": "completed", "output": items, "usage": _usage(answer.usage)}

        def event(kind: str, fields: Json) -> Event:
            return kind, {"type": kind, "sequence_number": next(numbers)} | fields

        yield event("response.created", {"response": begun})
        yield event("response.in_progress", {"response": begun})
        for index, item in enumerate(items):
            place = {"output_index": index}
            for kind, fields in _item_events(item):
                yield event(f"response.{kind}", place | fields)
            yield event("response.output_item.done", place | {"item": item})
        yield event("response.completed", {"response": ended})

    def refusal(self, status: int, message: str, kind: str | None = None) -> Json:
        return openai_refusal(status, message, kind)

    def broken(self, message: str) -> Event:
        error = {"code": "server_error", "message": message}
        response = {"id": new_id("resp"), "object": "response", "status": "failed", "error": error}
        return "response.failed", {"type": "response.failed", "response": response}


def _by_name(offered: list[Json]) -> dict[str, Json]:
    """Return every tool by name; those of a namespace include its name."""
    tools: dict[str, Json] = {}
    for tool in offered:
        name = tool.get("name") or tool["type"]
        if tool.get("type") == "namespace":
            for member in tool.get("tools") or []:
                tools.setdefault(member["name"], member | {"namespace": name})
        else:
            tools[name] = tool
    return tools


def _items(answer: Answer) -> list[Json]:
    items: list[Json] = []
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        items.append({"type": "reasoning", "id": new_id("rs"), "encrypted_content": None, "summary": summary})
    if answer.text is not None:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        message = {"type": "message", "id": new_id("msg"), "role": "assistant", "status": "completed"}
        items.append(message | {"content": content})
    if call := answer.call:
        item: Json = {"call_id": call.id, "name": call.name, "status": "completed"}
        if call.raw is not None:
            item |= {"type": "custom_tool_call", "id": new_id("ctc"), "input": call.raw}
        else:
            item |= {"type": "function_call", "id": new_id("fc"), "arguments": json.dumps(call.arguments)}
        items.append(item | ({"namespace": call.namespace} if call.namespace else {}))
    return items


def _item_events(item: Json) -> Iterator[tuple[str, Json]]:
    """Yield the events of an item before its end."""
    if item["type"] == "message":
        part, place = item["content"][0], {"item_id": item["id"], "content_index": 0}
        yield "output_item.added", {"item": item | {"content": [], "status": "in_progress"}}
        yield "content_part.added", place | {"part": part | {"text": ""}}
        for piece in pieces(part["text"]):
            yield "output_text.delta", place | {"delta": piece}
        yield "output_text.done", place | {"text": part["text"]}
        yield "content_part.done", place | {"part": part}
    elif item["type"] == "reasoning":
        text, place = item["summary"][0]["text"], {"item_id": item["id"], "summary_index": 0}
        yield "output_item.added", {"item": item | {"summary": []}}
        yield "reasoning_summary_part.added", place | {"part": {"type": "summary_text", "text": ""}}
        yield "reasoning_summary_text.delta", place | {"delta": text}
        yield "reasoning_summary_text.done", place | {"text": text}
    else:
        yield "output_item.added", {"item": item | {"status": "in_progress"}}


def _usage(usage: dict[str, int] | None) -> Json | None:
    """Return the usage: cached tokens are part of the input, reasoning tokens of the output."""
    return usage and {
        "input_tokens": usage["input"],
        "input_tokens_details": {"cached_tokens": usage["cached"]},
        "output_tokens": usage["output"],
        "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
        "total_tokens": usage["input"] + usage["output"],
    }
