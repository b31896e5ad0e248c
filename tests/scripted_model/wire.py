"""The common part of the three protocols: requests, answers, and the base class of a protocol."""

import itertools
import json
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Event = tuple[str | None, Json | str]
"""An event of a stream: its name, if the protocol has names, and its data."""

CWD = (
    re.compile(r"<cwd>\s*(.+?)\s*</cwd>"),  # codex
    re.compile(r"(?:Primary w|W)orking directory:\s*`?([^\s`]+)`?"),  # claude
    re.compile(r"current working directory(?: is|:)?\s*`?(/[^\s`]+)`?", re.IGNORECASE),  # kimi
    re.compile(r"working directory(?: is|:)?\s*`?(/[^\s`,]+)`?", re.IGNORECASE),
    re.compile(r"working in the directory: (/\S+)"),  # qwen
)
"""Patterns of the programs' work folders in requests."""

HOOK_RESULT = "<hook_result "
"""Beginning of a prompt from a hook: the next user message only refers to it."""

_numbers = itertools.count(1)


@dataclass
class Asked:
    """A request of any protocol: the newest user message, and what followed it."""

    model: str
    stream: bool
    body: Json
    user_text: str = ""
    user_turns: int = 0
    calls: int = 0
    """Number of the assistant's tool calls since."""
    outputs: list[str] = field(default_factory=list)
    """Outputs of these calls."""
    hooked: bool = False
    """True if a hook supplied the newest message."""
    tools: dict[str, Json] = field(default_factory=dict)
    effort: str | None = None
    cwd: str = "."

    def user_said(self, text: str) -> None:
        referred = self.hooked and not self.calls
        self.hooked = text.startswith(HOOK_RESULT)
        if not referred:
            self.user_text, self.calls, self.user_turns = text, 0, self.user_turns + 1
            self.outputs = []


@dataclass
class Call:
    """A call of a tool; `raw` is the input of a tool that takes text, others have arguments."""

    name: str
    arguments: Json | None = None
    raw: str | None = None
    namespace: str | None = None
    id: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex[:24]}")

    @property
    def input(self) -> Json:
        return {"input": self.raw} if self.arguments is None else self.arguments


@dataclass(frozen=True)
class Answer:
    """The assistant's answer: text, reasoning, call, and usage."""

    model: str
    text: str | None
    call: Call | None
    reasoning: str | None
    usage: dict[str, int] | None


class Protocol(ABC):
    """A protocol of requests to a model and its answers."""

    name: str
    path: str
    """End of its requests' paths."""

    def asked(self, body: Json) -> Asked:
        """Parse a request, with the program's folder."""
        request = Asked(model=body.get("model", ""), stream=bool(body.get("stream")), body=body)
        self.read(body, request)
        request.cwd = folder_in(body)
        return request

    @abstractmethod
    def read(self, body: Json, into: Asked) -> None:
        """Record the messages and the offered tools."""

    @abstractmethod
    def whole(self, answer: Answer) -> Json:
        """Return the complete answer."""

    @abstractmethod
    def stream(self, answer: Answer, asked: Asked) -> Iterator[Event]:
        """Yield the answer as events."""

    @abstractmethod
    def refusal(self, status: int, message: str, kind: str | None = None) -> Json:
        """Return the body of an HTTP error."""

    @abstractmethod
    def broken(self, message: str) -> Event:
        """Return the event of an error in the middle of a stream."""


def folder_in(body: Json) -> str:
    """Return the program's work folder, as stated in the request."""
    text = json.dumps(body, ensure_ascii=False).replace("\\n", "\n")
    for pattern in CWD:
        if folders := pattern.findall(text):
            return str(folders[-1]).rstrip('.,\\"')
    return "."


def text_of(content: Any) -> str:
    """Return the text of a message, be it one or a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content or [] if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def new_id(prefix: str) -> str:
    return f"{prefix}_{next(_numbers):06d}{uuid.uuid4().hex[:12]}"


def pieces(text: str, size: int = 48) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def openai_refusal(status: int, message: str, kind: str | None) -> Json:
    """Return the error body of the two OpenAI protocols."""
    invalid = "invalid_request_error"
    kinds = {400: invalid, 401: invalid, 404: invalid, 429: "rate_limit_exceeded"}
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    error = {"message": message, "type": kind or kinds.get(status, "server_error"), "param": None}
    return {"error": error | {"code": codes.get(status)}}
