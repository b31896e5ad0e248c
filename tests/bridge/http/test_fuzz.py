"""Requests that schemathesis generates from the OpenAPI document, sent to a listening bridge (rulings J1, J9)."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.operations.paging import cursor
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live, bearer
from tests.bridge.seeds import register

SECONDS = os.environ.get("FUZZ_SECONDS", "20")
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "12")
SEED = int(os.environ.get("FUZZ_SEED", "20261"))

CONFIG = f"""
[[operations]]
include-operation-id = "list_jobs"
parameters = {{ cursor = "{cursor(1.0, seeds.ROOT)}", tree = "{seeds.ROOT}" }}

[[operations]]
include-operation-id = "list_trees"
parameters = {{ cursor = "{cursor(1.0, seeds.ROOT)}" }}

[[operations]]
include-operation-id = "list_runs"
parameters = {{ cursor = "{cursor(1.0, "prun-0123456789ab")}" }}

[[operations]]
include-operation-id = "list_reviews"
parameters = {{ cursor = "{cursor(1.0, "review-0123456789ab")}" }}

[[operations]]
include-operation-id = "ask_agent"
parameters = {{ name = "scout" }}

[[operations]]
include-operation-id = ["review_with_agent", "implement_with_agent"]
parameters = {{ name = "scout" }}

[[operations]]
include-operation-id = "retry_job"
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", "503"]

[[operations]]
include-operation-id = "run_pipeline"
parameters = {{ name = "made-up" }}

[[operations]]
include-operation-id = "get_job"
parameters = {{ wait = "1s" }}

[checks]
max_response_time = 60

[generation]
allow-x00 = false
"""
"""Exclusions for values that cannot be generated: cursors, which only the page before returns; registered names; and
U+0000, which no text may hold, although the document does not say so for each. Without a worker, a retry is answered
503.
"""


@pytest.mark.ruling("J1", "J9")
@pytest.mark.long
def test_nothing_made_up_from_the_document_meets_a_fault_or_an_answer_it_does_not_tell_of(
    with_temporal: Service, listening: Callable[[Service], Live], tmp_path: Path
) -> None:
    """Every check of schemathesis; longer with FUZZ_SECONDS and FUZZ_EXAMPLES, others with FUZZ_SEED."""
    register(with_temporal, "made-up")
    seeds.repo(with_temporal, host=with_temporal.settings.host, github="acme/shop")
    seeds.write(with_temporal, seeds.task(), seeds.job(), seeds.event(1), seeds.round_())
    live = listening(with_temporal)
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    done = made_up(with_temporal, live, tmp_path, SEED)
    if done.returncode and " FAILURES " not in done.stdout:  # schemathesis's own fault; others may avoid it
        done = made_up(with_temporal, live, tmp_path, SEED + 1)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def made_up(service: Service, live: Live, folder: Path, seed: int) -> subprocess.CompletedProcess[str]:
    """Run schemathesis; equal seeds send equal requests."""
    return subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "run", f"{live.url}/openapi.json"),
            *("--header", f"Authorization: {bearer(service)['Authorization']}"),
            *("--checks", "all", "--max-time", SECONDS, "--max-examples", EXAMPLES),
            *("--continue-on-failure", "--request-timeout", "60", "--no-color", "--seed", str(seed)),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=float(SECONDS) + 120,
        check=False,
    )
