"""A whole host for pipelines: real workers, real git, real processes, on a task queue of the test's own."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from temporalio.client import Client

from activities.host.context import Context
from activities.host.slots import Slots
from activities.settings.home import Home
from activities.worker import agent_worker, tree_worker
from bridge.operations.pipelines import definitions, runs
from bridge.operations.pipelines.runs import RunView
from bridge.operations.registry import agents, repos
from bridge.operations.service import Service
from tests.unboxed import shell
from tests.waiting import until
from workflows.pipeline.syntax import Format

ANSWER = """\
import json, os, sys, time, pathlib
prompt = sys.stdin.read()
stage = pathlib.Path(os.environ["STAGE"])
(stage / "prompt").write_text(prompt)
if "STAY" in prompt:
    (stage / "held").write_text(str(os.getpid()))
    while not (stage / "go").exists():
        time.sleep(0.02)
if os.environ["SERVICE_ACTION"] == "implement":
    pathlib.Path("made.txt").write_text("made")
said = {"decision": "implemented" if os.environ["SERVICE_ACTION"] == "implement" else "approved", "summary": "did it"}
if "decide:" in prompt and not (stage / "better").exists():
    said["decision"] = prompt.split("decide:")[1].split()[0]
if "ask a person" in prompt and os.environ["SERVICE_CONTINUATION"] == "none":
    said["human_questions"] = [{"id": "q", "prompt": "which?"}]
print(json.dumps({"service_result": said}))
"""

COMMIT = "git -c user.name=t -c user.email=t@example.invalid commit -q"


@dataclass
class PipelineHost:
    """A person's means: operations on a home, and a folder where stages leave traces."""

    service: Service
    client: Client
    folder: Path
    repo: Path
    name: str
    """The name of the pipeline that files here call `p`, unique on the shared server."""

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run the host's workers, as the daemon does."""
        context = Context(self.service.home, self.service.settings, self.service.store)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(tree_worker(self.client, context))
            await stack.enter_async_context(agent_worker(self.client, context, Slots(context.settings)))
            yield

    async def add(self, text: str) -> None:
        await definitions.add(self.service, text.replace("name: p\n", f"name: {self.name}\n", 1), Format.YAML)

    async def run(self, **payload: str) -> str:
        return await definitions.run(self.service, self.name, payload)

    def show(self, run_id: str) -> RunView:
        return runs.show_run(self.service, run_id)

    async def until(self, what: Callable[[], object]) -> None:
        await until(what, lambda: runs.list_runs(self.service, runs.RunFilter()))

    async def until_state(self, run_id: str, *states: str) -> RunView:
        await self.until(lambda: self.show(run_id).state in states)
        return self.show(run_id)

    async def until_over(self, run_id: str) -> RunView:
        await self.until(lambda: self.show(run_id).finished_at is not None)
        return self.show(run_id)

    def there(self, name: str) -> bool:
        return (self.folder / name).exists()

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    def commit(self, name: str) -> str:
        """Add a commit to the checkout."""
        (self.repo / name).touch()
        words = f"git add {name} && {COMMIT} -m {name} && git rev-parse HEAD"
        return subprocess.check_output(["sh", "-c", words], cwd=self.repo, text=True).strip()

    def states(self, run_id: str) -> dict[str, str]:
        return {stage.id: stage.state.value for stage in self.show(run_id).stages}


def pipeline_host(client: Client, queue: str, home: Home, folder: Path) -> PipelineHost:
    """Create a home on the test's server, with one repository and one agent."""
    stage, repo = folder / "stage", folder / "shop"
    stage.mkdir()
    repo.mkdir()
    words = f"git init -q -b main && {COMMIT} --allow-empty -m first"
    subprocess.run(["sh", "-c", words], cwd=repo, check=True)
    (folder / "agent.py").write_text(ANSWER)
    home.config.write_text(
        f'[temporal]\naddress = "{client.service_client.config.target_host}"\nnamespace = "{client.namespace}"\n'
        f'task_queue = "{queue}"\nby_hand = true\n[worker]\nhost = "{queue}"\n' + shell("STAGE")
    )
    service = Service(home)
    repos.add(service, "acme/shop", repo)
    new = agents.NewAgent(
        "dev",
        "shell",
        command=f"{sys.executable} {folder / 'agent.py'}",
        capabilities="ask,review,implement",
        autonomy="workspace-write",
        repos=("acme/shop",),
    )
    agents.add(service, new)
    return PipelineHost(service, client, stage, repo, f"p-{uuid4().hex[:8]}")
