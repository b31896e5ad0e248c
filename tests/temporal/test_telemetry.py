"""Traces of trees, and the metrics of Temporal's SDK (ruling Q9)."""

import re
import sys
import time

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import Replayer

from activities import telemetry
from activities.settings.model import Settings
from activities.telemetry import trace_of
from bridge.machine.ports import choose_port
from tests.temporal.host import Host, script, serving, start
from tests.temporal.people import asking, order, over, say, waits
from tests.temporal.sdk_metrics import METRICS
from tests.temporal.server import runs
from tests.tree.simulator import delegation
from workflows.model.errors import UsageError
from workflows.temporal.runner import WORKFLOWS

pytestmark = pytest.mark.ruling("Q9")


def times(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


async def test_a_tree_is_one_trace_of_short_spans_and_none_across_its_pause(client: Client, queue: str) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traced = telemetry.tracing(provider)
    host = Host(asking({"root": (delegation("a"),)}, "root"))
    working = Client(**(client.config() | {"interceptors": [traced]}))  # type: ignore[arg-type]
    async with serving(working, queue, host):
        tree = await start(client, queue)
        await waits(host)
        paused_at = time.time_ns()
        await say(tree, order(tree.id, "answer", "q-root: blue"))
        await over(tree, host)
    spans = [span for span in exporter.get_finished_spans() if (span.attributes or {})["temporalWorkflowID"] == tree.id]
    assert {format(span.context.trace_id, "032x") for span in spans} == {trace_of(tree.id).split("-")[1]}
    runs_of_jobs = [span for span in spans if span.name == "RunActivity:run_job"]
    assert len(runs_of_jobs) == len(host.runs)
    steps = {span.context.span_id for span in spans if span.name == "StartActivity:run_job"}
    assert {span.parent.span_id for span in runs_of_jobs if span.parent} == steps, "linked to the step that began it"
    last = {span.name.partition(":")[0] for span in spans if len({*times(span)}) > 1}
    assert last == {"RunActivity", "SignalWorkflow"}, "a worker's client is not traced: the latter is the test's"
    assert [span.name for span in spans if times(span)[0] < paused_at < times(span)[1]] == []
    exporter.clear()
    replays = Replayer(workflows=WORKFLOWS, workflow_runner=runs(client), data_converter=client.data_converter)
    await replays.replay_workflow(await tree.fetch_history())
    again = Replayer(
        workflows=WORKFLOWS, workflow_runner=runs(client), data_converter=client.data_converter, interceptors=[traced]
    )
    await again.replay_workflow(await tree.fetch_history())
    assert exporter.get_finished_spans() == (), "a replay adds nothing"


async def test_the_metrics_of_the_sdk_are_offered_at_the_address_that_is_set(
    client: Client, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Runtime] = []
    monkeypatch.setattr(Runtime, "set_default", made.append)
    telemetry.offer_metrics(Settings())
    assert made == []
    address = f"127.0.0.1:{choose_port(0, 'metrics').port}"
    settings = Settings.model_validate({"worker": {"metrics": address}})
    telemetry.offer_metrics(settings)
    with pytest.raises(UsageError, match=f"cannot listen at {address}: "):
        telemetry.offer_metrics(settings)
    target = client.service_client.config.target_host
    shown = await Client.connect(target, data_converter=client.data_converter, runtime=made[0])
    host = Host(script({}))
    async with serving(shown, queue, host):
        await over(await start(client, queue), host)
        async with httpx.AsyncClient() as scraper:
            text = (await scraper.get(f"http://{address}/metrics")).text
    assert METRICS - set(re.findall(r"^(temporal_[a-z_]+)", text, re.MULTILINE)) == set()


def test_without_a_collector_nothing_is_traced_and_without_the_extra_it_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(telemetry.ENDPOINT, raising=False)
    assert telemetry.begin_traces("web-1") == []
    monkeypatch.setenv(telemetry.ENDPOINT, "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert telemetry.begin_traces("web-1") == []
    assert "-m pip install 'delegation-service[telemetry]'" in caplog.text
