"""Dependencies that endpoints take as parameters: values of the app, the current call, and idempotent repetition."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BaseModel

from bridge.http.wire.call import Call, call_of
from bridge.http.wire.parameters import IdempotencyKey
from bridge.http.wire.stream_limit import HeldOpen
from bridge.http.wire.thread_pools import act
from bridge.operations import idempotency
from bridge.operations.idempotency import Act, Answer
from bridge.operations.orders.trees import new_root_id
from bridge.operations.service import Service


def of_app(name: str) -> Any:
    """Return a dependency on a value of `app.state`: each home has its own app, but all apps share the routes."""

    async def value(request: Request) -> Any:  # FastAPI would run a plain function in a thread
        return getattr(request.app.state, name)

    return Depends(value)


async def _call(request: Request) -> Call:
    return call_of(request.scope)


ServiceDep = Annotated[Service, of_app("service")]
HeldDep = Annotated[HeldOpen, of_app("held")]
CallDep = Annotated[Call, Depends(_call)]


@dataclass(frozen=True)
class Once:
    """Runs an action once for all calls with the same idempotency key (ruling J9)."""

    service: Service
    request: Request
    key: str | None

    async def run(self, body: BaseModel, new_id: Callable[[], str], do: Act) -> Answer:
        """Run the action once per idempotency key of a token; equal keys need equal method, path and body."""
        call = call_of(self.request.scope)
        owner = call.caller if call.token else ""
        text = json.dumps(body.model_dump(mode="json"), sort_keys=True)
        words = f"{self.request.method} {self.request.url.path}\n{text}"
        return await act(lambda: idempotency.once(self.service, self.key, words, new_id, do, owner=owner))

    async def start(self, body: BaseModel, start: Act) -> Answer:
        """Start a tree once per idempotency key, and record its job's id in the audit line."""
        answer = await self.run(body, new_root_id, start)
        call_of(self.request.scope).created.append(answer["job_id"])
        return answer


async def _once(service: ServiceDep, request: Request, idempotency_key: IdempotencyKey = None) -> Once:
    return Once(service, request, idempotency_key)


OnceDep = Annotated[Once, Depends(_once)]
