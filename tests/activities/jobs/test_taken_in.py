"""Redaction of an agent's result with a secret in every field (ruling N7)."""

from pathlib import Path

import pytest

from activities.jobs import attempt_outcome
from activities.redaction.kept_secrets import KeptSecrets
from tests.activities.jobs.conftest import Stage
from tests.secrets.redaction_table import TOKENS
from workflows.contract.models import (
    Action,
    Decision,
    Delegation,
    Ephemeral,
    HumanQuestion,
    Runtime,
    ServiceResult,
)

TOKEN = TOKENS["GitHub personal"]
SAYS = 'print(\'{"service_result": {"decision": "implemented", "summary": "fine"}}\')\n'


class _Context:
    def __init__(self, home: Path) -> None:
        self.kept = KeptSecrets(home)


def _result(word: str = "") -> ServiceResult:
    leg = Delegation(
        id=TOKEN, agent=TOKEN, action=Action.ASK, prompt=f"use {TOKEN} {word}".strip(), deps=("b",), phase=TOKEN,
        fingerprint=TOKEN, worktree=TOKEN, artifacts=(TOKEN,),
    )  # fmt: skip
    worker = Ephemeral(runtime=Runtime.RUNTIME_A, role=TOKEN, capabilities=(TOKEN,))
    return ServiceResult(
        decision=Decision.APPROVED, summary=TOKEN, findings=(TOKEN, {TOKEN: TOKEN}), changes_made=(TOKEN,),
        tests_run=(TOKEN,), needs=({"why": TOKEN},), artifact_body={"config": [f"key {TOKEN}"]},
        delegations=(leg, Delegation(id="b", ephemeral=worker, action=Action.ASK, prompt="plain")),
        human_questions=(HumanQuestion(id=TOKEN, prompt=TOKEN, choices=(TOKEN,)),),
    )  # fmt: skip


@pytest.mark.ruling("N7", "A12")
def test_no_field_of_a_result_brings_a_secret_in(tmp_path: Path) -> None:
    context = _Context(tmp_path)
    taken = attempt_outcome.redact_for_store(context, _result())  # type: ignore[arg-type]
    assert TOKEN not in taken.model_dump_json()
    assert context.kept.show(taken.delegations[0].prompt) == f"use {TOKEN}"
    assert taken.delegations[1] == _result().delegations[1].model_copy(
        update={"ephemeral": taken.delegations[1].ephemeral}
    )
    body = taken.artifact_body
    assert isinstance(body, dict)
    assert context.kept.show(str(body["config"])) == str([f"key {TOKEN}"])


@pytest.mark.ruling("N7")
def test_an_agent_s_word_for_a_secret_is_put_back_for_nobody(tmp_path: Path) -> None:
    context = _Context(tmp_path)
    word = context.kept.hide("ghp" + "_" + "Z9y8" * 9)
    taken = attempt_outcome.redact_for_store(context, _result(word))  # type: ignore[arg-type]
    assert word not in taken.model_dump_json()
    assert context.kept.show(taken.delegations[0].prompt) == f"use {TOKEN} [redacted]"


@pytest.mark.ruling("N7")
async def test_a_file_that_is_called_like_a_word_for_a_secret_is_told_without_it(stage: Stage) -> None:
    """Names of files occur in the prompts of others."""
    word = "redacted-" + "0123456789abcdef0123"
    made = f"open({word + '.py'!r}, 'w').write('x')\n" + SAYS
    outcome = await stage.play(stage.job(made, Action.IMPLEMENT))
    assert outcome.touched_files == ("[redacted].py",)
