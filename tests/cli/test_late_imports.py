"""Late imports: no command loads what takes long and is not for it. Members collect no garbage while they load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from activities.settings.home import Home

pytestmark = pytest.mark.ruling("N3")

PROGRAM = """
import sys
from cli.main import main
from bridge.operations.branches import branches, diffs, merges; from bridge.operations.home import gc
for words in (["job", "list"], ["attention"], ["repo", "list"], ["daemon", "status"]):
    assert main(words) in {0, 1}, words
assert "pygit2" not in sys.modules
"""
READS = """
import sys
from cli.main import main
for words in ("job list", "job show job-0c5e2v7q9a3k", "job tree job-0c5e2v7q9a3k", "attention", "agent list"):
    main(words.split())
main(["daemon", "status"])
needless = {
    "activities.boxes.enter",
    "activities.git.work_folder.worktrees",
    "activities.runs.supervised_run",
    "alembic",
    "bridge.daemon.foreground",
    "bridge.operations.home.cluster",
    "bridge.operations.pipelines.definitions",
    "sqlalchemy.dialects.postgresql",
    "temporalio",
    "workflows.pipeline",
    "workflows.tree.state",
}
assert not needless & set(sys.modules), needless & set(sys.modules)
"""
LISTS = """
import sys
from cli.main import main
for words in ("job list", "daemon status"):
    main(words.split())
needless = {"bridge.operations.jobs.jobs", "workflows.model.event_payloads"} & set(sys.modules)
assert not needless, needless
"""
OUTSIDE = """
import sys
from cli.main import main
assert main(["init"]) == 2
needless = {"asyncio", "sqlalchemy", "temporalio", "bridge.operations.service"} & set(sys.modules)
assert not needless, needless
"""
MEMBERS = """
import gc, sys
whole = []
gc.callbacks.append(lambda phase, info: whole.append(phase) if info["generation"] == 2 else None)
import activities.__main__, bridge.http.__main__, bridge.github.__main__
assert not whole and gc.isenabled()
assert "sqlalchemy.dialects.postgresql" not in sys.modules
"""
WARM = """
import sys
from cli.main import main
from cli.warm import server
server._warm_up()
PACKAGES = {"activities", "bridge", "cli", "pydantic", "sqlalchemy", "workflows"}
imported = set(sys.modules)
for words in ("job list", "job show job-0c5e2v7q9a3k", "attention", "agent list", "daemon status"):
    main(words.split())
late = {name for name in set(sys.modules) - imported if name.split(".")[0] in PACKAGES}
assert not late, late
"""
DOCTOR = """
import sys
import bridge.operations.health.doctor
needless = {"activities.host.build_trial", "activities.store.database", "pygit2", "sqlalchemy", "temporalio"}
assert not needless & set(sys.modules), needless & set(sys.modules)
"""
UNDRAWN = """
import sys
from cli.main import main
for words in ("--help", "job --help", "job list", "memory list", "spend", "doctor", "job show"):
    assert main(words.split()) in {0, 1, 2}, words
assert not [name for name in sys.modules if name.split(".")[0] in {"rich", "pygments", "markdown_it"}]
assert "cli.drawing.pager" not in sys.modules
"""


def test_commands_that_look_at_no_repository_do_not_load_libgit2(home: Home) -> None:
    run(home, PROGRAM)


def test_a_read_imports_nothing_that_starts_or_changes_work(home: Home) -> None:
    run(home, READS)


def test_a_list_of_trees_and_the_status_import_nothing_that_shows_a_job(home: Home) -> None:
    run(home, LISTS)


def test_outside_of_a_repository_init_imports_nothing_that_sets_one_up(home: Home, tmp_path: Path) -> None:
    run(home, OUTSIDE, folder=tmp_path)


def test_the_worker_and_the_bridge_load_without_the_garbage_collector_and_the_database_of_others(home: Home) -> None:
    run(home, MEMBERS)


def test_the_warm_process_has_imported_what_a_read_needs(home: Home) -> None:
    run(home, WARM)


def test_doctor_starts_the_agents_programs_before_it_imports_the_store_and_temporal(home: Home) -> None:
    run(home, DOCTOR)


def test_where_nothing_is_drawn_rich_is_not_imported(home: Home) -> None:
    run(home, UNDRAWN)


def run(home: Home, program: str, folder: Path | None = None) -> None:
    env, words = {**os.environ, "SERVICE_HOME": str(home.root)}, [sys.executable, "-P", "-c", program]
    ended = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
