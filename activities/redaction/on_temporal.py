"""Redaction at the border to Temporal: people's input and results of activities go into histories (ruling N7)."""

import asyncio
from typing import Any, NoReturn

import temporalio.client
import temporalio.worker
from temporalio.client import OutboundInterceptor, StartWorkflowInput
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.redaction.kept_secrets import KeptSecrets
from activities.redaction.redact import map_texts, redact_all, redact_text

_LONG = 4096
"""Characters; longer texts are redacted in a thread."""


class Hiding(temporalio.client.Interceptor):
    """A client interceptor that replaces secrets by placeholders and stores them in the service home, so that agents
    get them and histories don't.
    """

    def __init__(self, kept: KeptSecrets) -> None:
        self._kept = kept

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002
        return _Sending(next, self._kept)


class _Sending(OutboundInterceptor):
    def __init__(self, next_: OutboundInterceptor, kept: KeptSecrets) -> None:
        super().__init__(next_)
        self._kept = kept

    async def start_workflow(self, input: StartWorkflowInput) -> Any:  # noqa: A002
        await self._hide_off_loop_if_long(input)
        input.static_summary = input.static_summary and redact_text(input.static_summary)
        input.static_details = input.static_details and redact_text(input.static_details)
        return await super().start_workflow(input)

    async def signal_workflow(self, input: temporalio.client.SignalWorkflowInput) -> None:  # noqa: A002
        await self._hide_off_loop_if_long(input)
        await super().signal_workflow(input)

    async def start_workflow_update(self, input: temporalio.client.StartWorkflowUpdateInput) -> Any:  # noqa: A002
        await self._hide_off_loop_if_long(input)
        return await super().start_workflow_update(input)

    async def query_workflow(self, input: temporalio.client.QueryWorkflowInput) -> Any:  # noqa: A002
        await self._hide_off_loop_if_long(input)
        return await super().query_workflow(input)

    async def _hide_off_loop_if_long(self, sent: Any) -> None:
        """Redact long texts in a thread, so that the event loop does not wait."""
        if _length(sent.args) > _LONG:
            await asyncio.to_thread(self._hide, sent)
        else:
            self._hide(sent)

    def _hide(self, sent: Any) -> None:
        sent.args = tuple(map_texts(value, self._kept.hide) for value in sent.args)


def _length(values: Any) -> int:
    lengths: list[int] = []

    def measure(text: str) -> str:
        lengths.append(len(text))
        return text

    map_texts(values, measure)
    return sum(lengths)


class Redacting(temporalio.worker.Interceptor):
    """A worker interceptor that removes secrets from results and errors of activities."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _Answering(next)


class _Answering(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        try:
            answer = await super().execute_activity(input)
            return await asyncio.to_thread(redact_all, answer) if _length(answer) > _LONG else redact_all(answer)
        except CancelledError:
            raise
        except Exception as error:
            _fail(error)


def _fail(error: Exception) -> NoReturn:
    """Raise the error, without secrets in its message."""
    message = error.message if isinstance(error, ApplicationError) else str(error)
    if (clean := redact_text(message)) == message:
        raise error
    if isinstance(error, ApplicationError):
        raise ApplicationError(
            clean,
            *redact_all(error.details),
            type=error.type,
            non_retryable=error.non_retryable,
            next_retry_delay=error.next_retry_delay,
            category=error.category,
        ) from None
    raise ApplicationError(clean, type=type(error).__name__) from None
