"""What the three protocols have in common: what is asked, what is answered, and how a protocol is told apart."""

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
"""An event of a stream: its name, where the protocol has names, and its data."""

CWD = (
    re.compile(r"<cwd>\s*(.+?)\s*</cwd>"),  # codex
    re.compile(r"(?:Primary w|W)orking directory:\s*`?([^\s`]+)`?"),  # claude
    re.compile(r"current working directory(?: is|:)?\s*`?(/[^\s`]+)`?", re.IGNORECASE),  # kimi
    re.compile(r"working directory(?: is|:)?\s*`?(/[^\s`,]+)`?", re.IGNORECASE),
)
"""How programs tell the model where they work."""

HOOK_RESULT = "<hook_result "
"""How the prompt begins that a hook brings: what the user says next only refers to it."""

_numbers = itertools.count(1)


@dataclass
class Asked:
    """A request, whatever its protocol: the newest words of the user, and what came after them."""

    model: str
    stream: bool
    body: Json
    user_text: str = ""
    user_turns: int = 0
    calls: int = 0
    """How often the assistant has called a tool since."""
    hooked: bool = False
    """The newest words were brought by a hook."""
    tools: dict[str, Json] = field(default_factory=dict)
    effort: str | None = None
    cwd: str = "."

    def user_said(self, text: str) -> None:
        referred = self.hooked and not self.calls
        self.hooked = text.startswith(HOOK_RESULT)
        if not referred:
            self.user_text, self.calls, self.user_turns = text, 0, self.user_turns + 1


@dataclass
class Call:
    """A call of a tool; `raw` is the input of a tool that takes text, otherwise there are arguments."""

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
    """What the assistant says, thinks and calls, and what that cost."""

    model: str
    text: str | None
    call: Call | None
    reasoning: str | None
    usage: dict[str, int] | None


class Protocol(ABC):
    """One way to ask a model and to answer."""

    name: str
    path: str
    """How the addresses of its requests end."""

    def asked(self, body: Json) -> Asked:
        """What is asked, and from which folder."""
        found = Asked(model=body.get("model", ""), stream=bool(body.get("stream")), body=body)
        self.read(body, found)
        found.cwd = folder_in(body)
        return found

    @abstractmethod
    def read(self, body: Json, into: Asked) -> None:
        """Note who said what, and which tools are offered."""

    @abstractmethod
    def whole(self, answer: Answer) -> Json:
        """The answer at once."""

    @abstractmethod
    def stream(self, answer: Answer, asked: Asked) -> Iterator[Event]:
        """The answer in events."""

    @abstractmethod
    def refusal(self, status: int, message: str, kind: str | None = None) -> Json:
        """The body of an HTTP error."""

    @abstractmethod
    def broken(self, message: str) -> Event:
        """The event of an error in the middle of a stream."""


def folder_in(body: Json) -> str:
    """The folder that the program says it works in."""
    text = json.dumps(body, ensure_ascii=False).replace("\\n", "\n")
    for pattern in CWD:
        if found := pattern.findall(text):
            return str(found[-1]).rstrip('.,\\"')
    return "."


def text_of(content: Any) -> str:
    """The text of a message, whether it is one or a list of parts."""
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
    """The error of the two protocols that share one."""
    invalid = "invalid_request_error"
    kinds = {400: invalid, 401: invalid, 404: invalid, 429: "rate_limit_exceeded"}
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    error = {"message": message, "type": kind or kinds.get(status, "server_error"), "param": None}
    return {"error": error | {"code": codes.get(status)}}
