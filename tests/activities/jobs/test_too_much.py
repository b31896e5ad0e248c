"""Agents that leave more than can be read: each ends in time, with a reason."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from activities.agents.shell import Shell
from activities.host import disk_space
from activities.host.slots import Slots
from activities.jobs import execution, workspace
from activities.jobs.run_job import Jobs
from tests.activities.jobs.conftest import Stage
from tests.unboxed import unboxed
from tests.waiting import soon, wait_for
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState

pytestmark = [pytest.mark.ruling("N3"), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

START = (
    'import os, pathlib, sys\ndef good(): print(\'{"service_result": {"decision": "approved", "summary": "fine"}}\')\n'
)
RULES_WITHOUT_END = (
    START + "pathlib.Path('.gitignore').write_text('**/a/' * 14 + 'b')\n"
    "pathlib.Path('a/' * 60).mkdir(parents=True); pathlib.Path('a/' * 60, 'c').touch(); good()"
)
"""Two small files: libgit2 would compare them for years."""

DEEP = START + "for _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\ngood()"


async def play(stage: Stage, script: str, action: Action = Action.IMPLEMENT) -> JobOutcome:
    return await soon(stage.play(stage.job(script, action)))


async def test_rules_for_ignored_files_that_take_for_ever_end_at_the_deadline(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "LOOK_SECONDS", 2.0)
    outcome = await play(stage, RULES_WITHOUT_END)
    assert outcome.state is JobState.FAILED
    assert outcome.reason.startswith("the worktree cannot be read: it took longer than 2 s")


async def test_a_reader_whose_folder_cannot_be_read_has_its_result_and_it_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "LOOK_SECONDS", 2.0)
    outcome = await play(stage, RULES_WITHOUT_END, Action.ASK)
    assert outcome.state is JobState.SUCCEEDED
    assert [notice.kind for notice in outcome.notices] == ["work_left_out"]
    assert "it took longer than 2 s" in outcome.notices[0].message


async def test_output_that_takes_too_long_to_be_read_fails_the_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "READ_SECONDS", 0.3)
    line = '{"type":"usage","input_tokens":1,"output_tokens":1}\\n'
    outcome = await play(stage, START + f"sys.stdout.write('{line}' * 1_000_000); good()")
    assert outcome.state is JobState.FAILED
    assert outcome.reason.startswith("what the agent left cannot be read: it took longer than 0 s")


async def test_a_usage_line_that_is_nested_too_deeply_is_text(stage: Stage) -> None:
    outcome = await play(stage, START + 'print(\'{"type":"usage","x":\' + \'[\' * 4000); good()')
    assert outcome.state is JobState.SUCCEEDED


async def test_folders_in_folders_in_folders_are_left_out_and_told(stage: Stage) -> None:
    outcome = await play(stage, DEEP)
    assert outcome.state is JobState.SUCCEEDED
    assert "it is nested too deeply" in outcome.notices[0].message
    await asyncio.to_thread(os.system, f"rm -rf {stage.context.home.root}")  # pytest cannot: it is too deep


async def test_temporary_files_go_however_deep_they_lie(stage: Stage) -> None:
    """A program without a depth limit deletes them; the service does not wait for it."""
    script = DEEP.replace("for _", "os.makedirs(os.environ['TMPDIR']); os.chdir(os.environ['TMPDIR'])\nfor _")
    where = stage.context.home.runs
    outcome = await play(
        stage, START + f"os.environ['TMPDIR'] = str(next(pathlib.Path({str(where)!r}).iterdir()) / 'tmp')\n" + script
    )
    assert outcome.state is JobState.SUCCEEDED
    wait_for(lambda: not any((stage.context.home.root / "trash").glob("*")))
    assert not [*where.glob("*/tmp")]


@pytest.fixture
def bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Limit a job's writes to as many MiB as it usually has GiB."""
    monkeypatch.setattr(execution, "GIB", 1 << 20)
    monkeypatch.setattr(disk_space, "GIB", 1 << 20)
    context = replace(stage.context, settings=unboxed({"worker": {"job_disk": 4, "free_disk": 0}}))
    return replace(stage, context=context, jobs=Jobs(context, {"shell": Shell(())}, Slots(context.settings)))


@pytest.mark.parametrize(
    "writes", ["os.write(1, bytes(2**20))", "open('x', 'ab').write(bytes(2**20))"], ids=["output", "file"]
)
async def test_no_file_grows_beyond_the_bound_of_a_job(bounded: Stage, writes: str) -> None:
    script = START + f"try:\n    while True: {writes}\nexcept OSError as error: sys.exit(str(error))"
    outcome = await play(bounded, script)
    assert outcome.state is JobState.FAILED
    assert "File too large" in outcome.reason
    assert max(sizes(bounded.context.home.root)) <= 4 << 20


def sizes(folder: Path) -> Iterator[int]:
    """Yield the sizes of the files below a folder, of which some may be deleted meanwhile."""
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield os.lstat(os.path.join(path, name)).st_size


async def test_a_job_that_fills_the_disk_is_ended_and_fails_with_the_reason(
    bounded: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = count(1 << 22, 1 << 22)
    monkeypatch.setattr(disk_space, "disk", lambda _: (1 << 40, next(grown)))
    script = START + "import time\n[open(str(n), 'wb').write(bytes(2**20)) for n in range(8)]; time.sleep(600)"
    job = bounded.job(script, Action.IMPLEMENT)
    playing = asyncio.create_task(bounded.play(job))
    settings, held = bounded.context.settings.worker, bounded.context.room
    place = bounded.context.home.root
    while not playing.done():
        await asyncio.to_thread(held.look, place, settings)
        await asyncio.sleep(0.05)
    outcome = await playing
    assert outcome.state is JobState.FAILED
    assert re.match(r"it was ended because it wrote [5-8]\.\d GiB, and a job may write 4\.0 GiB", outcome.reason)
