"""A wrong result through a whole attempt: what its program is asked, and what is recorded when it corrects it."""

import json

import pytest

from tests.activities.jobs.conftest import Stage
from tests.contract.wrong_results import GOOD, WRONG, Wrong
from tests.depth import THOROUGH
from workflows.contract.locate import KEY
from workflows.model.states import JobState

SHOWN = {name: WRONG[name] for name in (WRONG if THOROUGH else list(WRONG)[::66])}
"""Some of them: `contract/test_wrong_results.py` reads all."""
MENDED = json.dumps({KEY: {**GOOD, "summary": "mended"}})
SCRIPT = """\
import pathlib, sys
prompt = sys.stdin.buffer.read().decode()
pathlib.Path(sys.argv[0]).with_name("prompt").write_text(prompt)
asked = prompt.startswith("Your result was not accepted")
sys.stdout.buffer.write({output!r} if not asked else {mended!r})
"""


@pytest.mark.ruling("A1", "A4", "A5", "A7", "spec:validation.one_repair")
@pytest.mark.parametrize("row", SHOWN.values(), ids=SHOWN)
async def test_an_agent_that_corrects_what_it_is_asked_succeeds(stage: Stage, row: Wrong) -> None:
    script = SCRIPT.format(output=row.output.encode(errors="surrogatepass"), mended=MENDED.encode())
    outcome = await stage.play(stage.job(script))
    failed = '"decision": "blocked"' in row.output and not row.lines
    assert outcome.state is (JobState.BLOCKED if failed else JobState.SUCCEEDED), outcome.reason
    assert outcome.summary == ("mended" if row.lines else "ok")
    repairs = [notice for notice in outcome.notices if notice.kind == "result_repaired"]
    assert len(repairs) == bool(row.lines)
    prompt = (stage.tmp / "prompt").read_text()
    for line in row.lines:
        assert f"\n{line}" in prompt
    for notice in repairs:
        faults = notice.data["faults"]
        assert isinstance(faults, list)
        assert [fault[: len(line)] for fault, line in zip(faults, row.lines, strict=True)] == [*row.lines]
        assert notice.data["accepted"] is True
