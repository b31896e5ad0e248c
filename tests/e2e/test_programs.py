"""A missing agents' program is not skipped silently."""

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import ROOT
from tests.e2e.programs import PROGRAMS


def test_the_summary_names_every_program_that_was_not_driven_and_why(tmp_path: Path) -> None:
    (tmp_path / "kimi.why").write_text("npm could not install it: no way through\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "tests/e2e/test_real_agents.py", f"--basetemp={tmp_path / 'temp'}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"AGENTS_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    *_, first, second, third, fourth, fifth, sixth, seventh, skipped = done.stdout.splitlines()
    assert first.startswith("codex: not installed")
    assert second.startswith("claude: not installed")
    assert third == "kimi: npm could not install it: no way through"
    others = ((fourth, "opencode"), (fifth, "copilot"), (sixth, "mcp"), (seventh, "qwen"))
    for line, program in others:
        assert line.startswith(f"{program}: not installed")
    assert "NOT driven" in done.stdout
    assert len(PROGRAMS) == 3
    assert "passed" not in skipped
