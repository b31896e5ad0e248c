"""Work that belongs to a pull request, on the real server with real workers: it starts from the head, and says so."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.settings.home import Home
from activities.store import job_rows
from activities.store.registry import repo_rows
from bridge.operations.orders import new_jobs
from bridge.operations.pipelines import definitions
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.activities.git.hub import propose
from tests.temporal.pipeline_stage import PipelineHost, pipeline_host
from tests.waiting import until
from workflows.temporal import search

pytestmark = pytest.mark.ruling("L1")
SAYS = 'echo "$SERVICE_PULL_REQUEST/$SERVICE_ISSUE" > $STAGE/{0}; git rev-parse HEAD >> $STAGE/{0}'
FILE = f"""name: p
repo: acme/shop
stages:
  - {{id: look, kind: shell, command: '{SAYS.format("look")}'}}
  - {{id: make, kind: agent, agent: dev, action: implement, prompt: Make it, needs: [look]}}
"""


@pytest_asyncio.fixture
async def host(
    client: Client, queue: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PipelineHost]:
    monkeypatch.setenv("STAGE", str(tmp_path / "stage"))
    made = pipeline_host(client, queue, home, tmp_path)
    hub = make_repository(tmp_path / "hub")
    run_git(hub, "fetch", "-q", str(made.repo), "main")
    run_git(hub, "reset", "-q", "--hard", "FETCH_HEAD")
    run_git(made.repo, "remote", "add", "origin", str(hub))
    host_name = made.service.settings.host
    repo_rows.put(made.service.store, "acme/shop", str(made.repo), host_name, "acme/web")
    yield made


def proposed(host: PipelineHost, number: int) -> str:
    """Open a pull request whose head the checkout does not know."""
    return propose(host.repo.parent / "hub", number, "a change")


async def test_every_stage_of_a_run_starts_from_the_head(host: PipelineHost) -> None:
    head = proposed(host, 7)
    await host.add(FILE)
    async with host.working():
        run_id = await definitions.run(host.service, host.name, {}, pull_request=7)
        proposed(host, 7)
        shown = await host.until_over(run_id)
    assert (shown.state, shown.reason) == ("succeeded", "")
    assert (host.folder / "look").read_text().split() == ["7/", head]
    assert "This work belongs to pull request #7 of acme/web." in (host.folder / "prompt").read_text()
    root = shown.stages[1].job_id
    assert root is not None
    job = job_rows.get(host.service.store, root)
    assert job is not None
    assert (job.pull_request, job.issue) == (7, None)
    assert job.branch is not None
    assert run_git(host.repo, "rev-parse", f"{job.branch}~1") == head
    described = await host.client.get_workflow_handle(root).describe()
    assert described.typed_search_attributes.get(search.PULL_REQUEST) == 7
    assert "https://github.com/acme/web/pull/7" in (await described.static_details() or "")


async def test_a_job_starts_from_the_head_and_its_agent_is_told(host: PipelineHost) -> None:
    head = proposed(host, 7)
    tip = commit_file(host.repo, "later.txt", "later")
    async with host.working():
        new = new_jobs.NewJob("dev", "implement", "Make it", "acme/shop", pull_request=7)
        root = await new_jobs.start(host.service, new)
        await until(lambda: _ended(host, root))
    job = job_rows.get(host.service.store, root)
    assert job is not None
    assert job.branch is not None
    assert run_git(host.repo, "rev-parse", f"{job.branch}~1") == head
    assert run_git(host.repo, "rev-parse", "HEAD") == tip
    assert "This work belongs to pull request #7 of acme/web." in (host.folder / "prompt").read_text()
    assert run_git(host.repo, "rev-parse", "refs/service/pull/7") == head


async def test_a_run_of_an_issue_tells_its_stages_the_issue(host: PipelineHost) -> None:
    await host.add(FILE)
    async with host.working():
        shown = await host.until_over(await definitions.run(host.service, host.name, {}, issue=3))
    assert shown.state == "succeeded"
    assert (host.folder / "look").read_text().split() == ["/3", run_git(host.repo, "rev-parse", "HEAD")]
    assert "This work belongs to issue #3 of acme/web." in (host.folder / "prompt").read_text()


def _ended(host: PipelineHost, root: str) -> bool:
    job = job_rows.get(host.service.store, root)
    return job is not None and job.ended_at is not None
