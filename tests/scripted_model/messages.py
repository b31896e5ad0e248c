"""The protocol of claude."""

import json
from collections.abc import Iterator

from tests.scripted_model.wire import Answer, Asked, Event, Json, Protocol, new_id, pieces, text_of

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}

ENFORCED = "[structured-output-enforce]"


class Messages(Protocol):
    name, path = "messages", "/messages"

    def read(self, body: Json, into: Asked) -> None:
        for message in body.get("messages") or []:
            content = message.get("content")
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
            if message.get("role") == "user":
                outputs = [text_of(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
                into.outputs += outputs
                texts = [block.get("text", "") for block in blocks if block.get("type") == "text"]
                texts = [text for text in texts if not text.lstrip().startswith("<system-reminder>")]
                if texts and texts[0].startswith(ENFORCED):  # claude asks for its tool, as if that had been called
                    into.outputs.append(texts.pop(0))
                    into.calls += 1
                if texts:  # results of tools are not messages of the user
                    into.user_said("\n".join(texts))
            elif message.get("role") == "assistant":
                into.calls += sum(block.get("type") == "tool_use" for block in blocks)
        into.tools.update({tool.get("name") or tool["type"]: tool for tool in body.get("tools") or []})
        effort = (body.get("output_config") or {}).get("effort")
        into.effort = effort or (body.get("thinking") or {}).get("type")

    def whole(self, answer: Answer) -> Json:
        return _message(answer) | {
            "content": _blocks(answer),
            "stop_reason": _stop(answer),
            "usage": _usage(answer.usage),
        }

    def stream(self, answer: Answer, asked: Asked) -> Iterator[Event]:
        usage = _usage(answer.usage)
        begun = _message(answer) | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
        yield _event("message_start", {"message": begun})
        yield _event("ping", {})
        for index, block in enumerate(_blocks(answer)):
            empty, deltas = _streamed_block(block)
            yield _event("content_block_start", {"index": index, "content_block": empty})
            for delta in deltas:
                yield _event("content_block_delta", {"index": index, "delta": delta})
            yield _event("content_block_stop", {"index": index})
        stop = {"stop_reason": _stop(answer), "stop_sequence": None}
        yield _event("message_delta", {"delta": stop, "usage": usage})
        yield _event("message_stop", {})

    def refusal(self, status: int, message: str, kind: str | None = None) -> Json:
        error = {"type": kind or KINDS.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": "req_scripted"}

    def broken(self, message: str) -> Event:
        return "error", self.refusal(529, message)


def _event(kind: str, fields: Json) -> Event:
    return kind, {"type": kind} | fields


def _message(answer: Answer) -> Json:
    return {"id": new_id("msg"), "type": "message", "role": "assistant", "model": answer.model, "stop_sequence": None}


def _blocks(answer: Answer) -> list[Json]:
    blocks: list[Json] = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": "ZmFrZQ=="})
    if answer.text is not None:
        blocks.append({"type": "text", "text": answer.text})
    if call := answer.call:
        tool_use = {"type": "tool_use", "id": call.id.replace("call_", "toolu_"), "name": call.name}
        blocks.append(tool_use | {"input": call.input})
    return blocks


def _streamed_block(block: Json) -> tuple[Json, list[Json]]:
    """Return a block's beginning, and its deltas."""
    if block["type"] == "text":
        deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        return block | {"text": ""}, deltas
    if block["type"] == "thinking":
        thought = {"type": "thinking_delta", "thinking": block["thinking"]}
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [thought, signed]
    given = pieces(json.dumps(block["input"]))
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in given]


def _stop(answer: Answer) -> str:
    return "tool_use" if answer.call else "end_turn"


def _usage(usage: dict[str, int] | None) -> Json:
    """Return the usage as claude's service does: tokens read from or written to a cache are not part of the input."""
    if usage is None:
        return {"input_tokens": 0, "output_tokens": 0}
    return {
        "input_tokens": max(0, usage["input"] - usage["cached"] - usage["cache_write"]),
        "cache_creation_input_tokens": usage["cache_write"],
        "cache_read_input_tokens": usage["cached"],
        "output_tokens": usage["output"],
        "service_tier": "standard",
    }
