"""Monitoring of this process: the metrics of Temporal's SDK, and traces (ruling Q9).

A tree is one trace, on whatever hosts it runs: its id is derived from the tree's. Steps of workflows are spans without
a duration. Only activities have one, so no span is open across a pause.
"""

import atexit
import hashlib
import logging
import os
import sys
from typing import Any

from temporalio import workflow
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import Interceptor

from activities.settings.model import Settings
from workflows.model.errors import UsageError
from workflows.temporal.github_desk import GithubDesk

log = logging.getLogger(__name__)

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
FLUSH_MILLISECONDS = 2000


def offer_metrics(settings: Settings) -> None:
    """Offer the SDK's metrics at `[worker].metrics`, in Prometheus' format. Call it before this process connects."""
    address = settings.worker.metrics
    if not address:
        return
    shown = PrometheusConfig(address, counters_total_suffix=True, unit_suffix=True, durations_as_seconds=True)
    try:
        Runtime.set_default(Runtime(telemetry=TelemetryConfig(metrics=shown)))
    except (ValueError, RuntimeError) as error:
        raise UsageError(f"[worker].metrics cannot listen at {address}: {error}", "service config show") from None


def begin_traces(host: str) -> list[Interceptor]:
    """Send traces of this process from now on if the environment names a collector. Return the interceptors that make
    them.
    """
    if not os.environ.get(ENDPOINT):
        return []
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        command = f"{sys.executable} -m pip install 'delegation-service[telemetry]'"
        log.warning("%s is set, and no traces are sent: %s is not installed; try: %s", ENDPOINT, error.name, command)
        return []
    about = Resource.create({"service.name": "service-worker", "host.name": host})
    provider = TracerProvider(resource=about, shutdown_on_exit=False)  # an end does not wait for a collector
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    atexit.register(provider.force_flush, FLUSH_MILLISECONDS)
    return [tracing(provider)]


def trace_of(workflow_id: str, run_id: str = "") -> str:
    """Return the trace of a workflow, as the header `traceparent`: equal on all hosts, and in all replays."""
    digest = hashlib.sha256(f"{workflow_id.partition('.')[0]}/{run_id}".encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


def tracing(provider: Any) -> Interceptor:
    """Return the interceptor that makes the spans. Its library is an optional dependency (an extra)."""
    from temporalio.contrib.opentelemetry import TracingInterceptor, TracingWorkflowInboundInterceptor

    class Steps(TracingWorkflowInboundInterceptor):
        def _load_workflow_context_carrier(self) -> Any:
            info = workflow.info()
            endless = info.workflow_type == GithubDesk.__name__  # a trace for each of its runs
            return {"traceparent": trace_of(info.workflow_id, info.run_id if endless else "")}

    class Tracing(TracingInterceptor):
        def workflow_interceptor_class(self, input: Any) -> type[Steps]:  # noqa: A002
            super().workflow_interceptor_class(input)
            return Steps

    return Tracing(provider.get_tracer("service"))
