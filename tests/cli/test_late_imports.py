"""Late imports: reads of rows do not load libgit2, which takes a tenth of a second; plain output does not load Rich."""

import os
import subprocess
import sys

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


def test_the_warm_process_has_imported_what_a_read_needs(home: Home) -> None:
    run(home, WARM)


def test_where_nothing_is_drawn_rich_is_not_imported(home: Home) -> None:
    run(home, UNDRAWN)


def run(home: Home, program: str) -> None:
    env = {**os.environ, "SERVICE_HOME": str(home.root)}
    said = subprocess.run([sys.executable, "-P", "-c", program], env=env, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
