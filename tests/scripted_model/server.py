"""The server: it selects a request's scenario and step, and records requests."""

import json
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from typing import Any, Self

from tests.scripted_model.handler import Handler
from tests.scripted_model.scenarios import BUILT_IN, USAGE, Scenario, Scenarios, Step, steps_of, with_texts
from tests.scripted_model.tools import RESULT_TOOL, planned
from tests.scripted_model.wire import Answer, Asked, Json, Protocol

MARKER = re.compile(r"\[\[fake:([A-Za-z0-9._-]+)\]\]")
NO_TOOL = "(the scripted tool is not offered by this program)"
KEPT = 200
"""Number of requests whose whole body is kept."""


@dataclass(frozen=True)
class Turn:
    """The response to a request: an answer, and a fault before or during it."""

    answer: Answer
    fault: Json

    @property
    def kind(self) -> str | None:
        kind = self.fault.get("kind")
        return None if kind is None else str(kind)


class ScriptedModel:
    """A server of scenarios, used as a context manager."""

    def __init__(self, scenarios: Mapping[str, Scenario] | None = None, port: int = 0) -> None:
        self.scenarios: Scenarios = BUILT_IN | dict(scenarios or {})
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[Json] = []
        self._faults: dict[str, int] = {}
        handler = type("BoundHandler", (Handler,), {"model": self})
        self._server = _Server(("127.0.0.1", port), handler)

    def __enter__(self) -> Self:
        serve = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        serve.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, scenario: str = "") -> str:
        """Return the base address without the protocol's version, with a default scenario if one is given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}" + (f"/s/{scenario}" if scenario else "")

    def requests(self) -> list[Json]:
        """Return the requests so far."""
        with self._lock:
            return [dict(request) for request in self._requests]

    def turn(self, protocol: Protocol, asked: Asked, scenario: str | None, program: str, key: str = "") -> Turn | None:
        """Return and record the turn of a request; None if it names an unknown scenario."""
        named = MARKER.findall(asked.user_text)
        name = named[-1] if named else scenario or "answer"
        chosen = self.scenarios.get(name)
        if not chosen:
            return None
        steps = steps_of(chosen, asked.user_text, asked.outputs)
        number = min(asked.calls, len(steps) - 1)
        step = with_texts(steps[number], asked.cwd)
        turn = _turn(step, asked, self._fault(step, f"{name}#{number}"))
        self.note(
            protocol=protocol.name,
            scenario=name,
            step=number,
            fault=turn.kind,
            model=asked.model,
            effort=asked.effort,
            stream=asked.stream,
            user_turns=asked.user_turns,
            call=turn.answer.call and turn.answer.call.name,
            tools=sorted(asked.tools),
            cwd=asked.cwd,
            program=program,
            key=key,
            user_text=asked.user_text[-200:],
            body=asked.body,
        )
        return turn

    def note(self, **request: Any) -> None:
        """Record a request."""
        with self._lock:
            self._requests.append(request)
            if len(self._requests) > KEPT:
                self._requests[-KEPT - 1].pop("body", None)

    def _fault(self, step: Step, key: str) -> Json:
        """Return the step's fault, unless it has occurred as often as `first` allows."""
        fault: Json = step.get("fault") or {}
        if "first" not in fault:
            return fault
        with self._lock:
            self._faults[key] = self._faults.get(key, 0) + 1
            return fault if self._faults[key] <= fault["first"] else {}


def _turn(step: Step, asked: Asked, fault: Json) -> Turn:
    call = planned(step, asked)
    text = step.get("text") if call and call.name == RESULT_TOOL else _text(step)
    if text is None and call is None:
        text = "" if fault else NO_TOOL
    usage = step.get("usage", {})
    costs = None if usage is None else USAGE | usage
    return Turn(Answer(asked.model, text, call, step.get("reasoning"), costs), fault)


def _text(step: Step) -> str | None:
    text: str | None = step.get("text")
    if "result" not in step:
        return text
    block = f"```json\n{json.dumps({'service_result': step['result']}, indent=2)}\n```"
    return f"{text}\n\n{block}" if text else block


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors, except for disconnected programs."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)
