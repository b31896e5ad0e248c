"""Pipelines used by people: real processes, the command line, kill -9."""

import json

import pytest

from tests.e2e.conftest import Installed

FILE = """\
name: nightly
repo: acme/shop
stages:
  - id: first
    kind: shell
    command: 'echo ran >> $PROOF; while [ ! -e $PROOF.go ]; do sleep 0.1; done; echo "$SERVICE_PAYLOAD_WHAT"'
  - {id: look, kind: agent, agent: scout, action: ask, prompt: Look, needs: [first]}
  - {id: last, kind: shell, command: echo over, needs: [look]}
"""
AGENT = """\
cat > $PROOF.prompt
echo '{"service_result": {"decision": "approved", "summary": "ok"}}'
"""


@pytest.mark.long
@pytest.mark.ruling("K1", "engine:runs")
def test_a_run_survives_worker_and_server(installed: Installed) -> None:
    """Both die while a stage runs: it is not repeated, and the run continues to its end."""
    installed.agent(
        "scout", """cat > $PROOF.prompt; echo '{"service_result": {"decision": "approved", "summary": "ok"}}'\n"""
    )
    (installed.tmp / "nightly.yaml").write_text(FILE)
    installed("daemon", "start")
    installed("pipeline", "add", "nightly.yaml")
    run_id = installed.json("pipeline", "run", "nightly", "--payload", "what=a=b c")["run_id"]
    installed.wait_for(lambda: installed.proof != "")
    refused = installed("pipeline", "run", "nightly", code=3).stderr
    assert f"the pipeline nightly already has an active run, {run_id}" in refused
    for member in ("worker", "server"):
        installed.kill(member)
    (installed.tmp / "proof.go").touch()
    shown = json.loads(installed("pipeline", "watch", run_id, "--json").stdout)
    assert [(stage["id"], stage["state"], stage["summary"]) for stage in shown["stages"]] == [
        ("first", "succeeded", "a=b c"),
        ("look", "succeeded", "ok"),
        ("last", "succeeded", "over"),
    ]
    assert installed.proof == "ran\n"
    assert ">\na=b c\n</data-" in (installed.tmp / "proof.prompt").read_text()
    assert installed.json("pipeline", "runs")["runs"][0]["state"] == "succeeded"
