"""A client generated from our OpenAPI document works unchanged (ruling J9)."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from activities.store.registry import memory_rows
from activities.store.registry.memory_rows import NewMemory
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.conftest import Document
from tests.bridge.seeds import register

pytestmark = pytest.mark.ruling("J1", "J9")
NAME = "generated_client"


@pytest.fixture(scope="module")
def generated(document: Document, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Generate an importable client; a warning of the generator is a fault of the document."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "config.yaml").write_text("post_hooks: []\n")
    program = Path(sys.executable).with_name("openapi-python-client")
    words = ["--path", "openapi.json", "--config", "config.yaml", "--meta", "none", "--output-path", NAME]
    made = subprocess.run(
        [program, "generate", *words, "--fail-on-warning"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        yield


def api(name: str) -> Callable[..., Any]:
    """Return an endpoint's function, which returns the parsed answer."""
    call: Callable[..., Any] = import_module(f"{NAME}.api.{name}").sync
    return call


def model(name: str) -> Any:
    return getattr(import_module(f"{NAME}.models"), name)


def test_it_starts_reads_lists_recalls_and_is_told_what_is_wrong(
    generated: None, with_temporal: Service, listening: Callable[[Service], Live]
) -> None:
    register(with_temporal, "by-client")
    memory_rows.write(with_temporal.store, NewMemory(None, None, "limit", "thirty a minute", "me"), confirmed_by="me")
    seeds.write(with_temporal, seeds.task(), seeds.job(), seeds.event(1), seeds.round_())
    seeds.payload(with_temporal, seeds.ROOT, {"service_result": {"decision": "approved", "summary": "ok"}})
    live = listening(with_temporal)
    token = with_temporal.home.bridge_token.read_text()

    def with_token(shown: str) -> Any:
        return import_module(NAME).AuthenticatedClient(live.url, token=shown, raise_on_unexpected_status=True)

    client = with_token(token)

    asked = model("AskRequest")(message="Which module limits the rate?", repo="acme/shop")
    answer = api("agents.ask_agent")("scout", client=client, body=asked, idempotency_key="k")
    assert isinstance(answer, model("AskAnswer"))
    assert api("agents.ask_agent")("scout", client=client, body=asked, idempotency_key="k") == answer
    job = api("jobs.get_job")(answer.job_id, client=client)
    assert (job.state.value, job.repo, job.result) == ("queued", "acme/shop", None)
    root = api("jobs.get_job")(seeds.ROOT, client=client)
    assert root.result["summary"] == "ok"
    assert root.round_.questions[0].prompt == "which?"
    listed = api("jobs.list_jobs")(client=client, limit=1)
    following = api("jobs.list_jobs")(client=client, limit=1, cursor=listed.next_cursor)
    assert {listed.jobs[0].job_id, following.jobs[0].job_id} == {answer.job_id, seeds.ROOT}
    assert api("jobs.get_tree")(seeds.ROOT, client=client).jobs[0].job_id == seeds.ROOT
    assert api("jobs.get_events")(seeds.ROOT, client=client).events[0].kind == "delegation_loop_warning"
    assert api("jobs.kill_job")(answer.job_id, client=client).root_job_id == answer.job_id

    run_id = api("pipelines.run_pipeline")("by-client", client=client).run_id
    assert api("pipelines.get_run")(run_id, client=client).stages[0].id == "build"
    assert api("pipelines.list_runs")(client=client).runs[0].id == run_id
    assert api("memory.recall_memory")(client=client, body=model("Recall")(query="minute")).entries[0].key == "limit"
    assert api("health.readyz")(client=client).status == "ok"

    for refused, code in (
        (api("pipelines.run_pipeline")("by-client", client=client), "active_run"),
        (api("agents.ask_agent")("nobody", client=client, body=asked), "not_found"),
        (api("jobs.get_job")("job", client=client), "usage"),
        (api("jobs.list_jobs")(client=with_token("x")), "unauthorized"),
    ):
        assert isinstance(refused, model("Error"))
        assert refused.code == code
        assert refused.request_id.startswith("req-")
