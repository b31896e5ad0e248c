import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from pydantic import BaseModel

from tests.contract.schema import SCHEMA, fits
from tests.contract.strategies import Body, bodies
from tests.depth import cases
from workflows.contract.canonical import canonical_json
from workflows.contract.locate import KEY
from workflows.contract.models import Decision, Delegation, Ephemeral, HumanQuestion, ServiceResult
from workflows.contract.prompt_contract import Form, explain_contract
from workflows.contract.validate import validate
from workflows.contract.wording import MEANINGS

LEG: Body = {"id": "a", "agent": "x", "action": "ask", "prompt": "p"}


@pytest.mark.ruling("spec:result.object")
def test_the_objects_have_the_fields_of_the_tables_and_no_others() -> None:
    objects: dict[type[BaseModel], str] = {
        ServiceResult: (
            "decision summary findings changes_made tests_run needs delegations artifact_body human_questions"
        ),
        Delegation: (
            "id agent ephemeral action prompt deps failure_policy synthesis_rule quorum timeout retry worktree "
            "artifacts fingerprint model effort phase"
        ),
        Ephemeral: "runtime model effort template role capabilities autonomy_policy",
        HumanQuestion: "id prompt choices",
    }
    for model, fields in objects.items():
        node = SCHEMA["properties"][KEY] if model is ServiceResult else SCHEMA["$defs"][model.__name__]
        node = SCHEMA["$defs"][node["$ref"].removeprefix("#/$defs/")] if "$ref" in node else node
        assert set(node["properties"]) == set(model.model_fields) == set(fields.split())
        assert node["additionalProperties"] is False


@pytest.mark.ruling("spec:result.object")
@given(bodies())
@settings(max_examples=cases(20, 100))
def test_every_valid_result_fits_the_schema_once_written_canonically(body: Body) -> None:
    verdict = validate({KEY: body})
    assert verdict.result is not None
    assert fits(json.loads(canonical_json(verdict.result)), SCHEMA)


@pytest.mark.ruling("A3", "A7", "A8", "A9")
@pytest.mark.parametrize(
    "change",
    [
        {"decision": "Approved"},
        {"decision": None},
        {"summary": ""},
        {"mood": 1},
        {"decision": "skipped", "delegations": [LEG]},
        {"delegations": [{**LEG, "ephemeral": {"runtime": "runtime_a"}}]},
        {"delegations": [{name: value for name, value in LEG.items() if name != "agent"}]},
        {"delegations": [{**LEG, "id": "-"}]},
        {"delegations": [{**LEG, "quorum": 1}]},
        {"delegations": [{**LEG, "synthesis_rule": "quorum"}]},
        {"delegations": [{**LEG, "synthesis_rule": "quorum", "quorum": 0}]},
        {"delegations": [{**LEG, "retry": -1}]},
        {"delegations": [{**LEG, "artifacts": ["x"]}]},
        {"delegations": [{"id": "a", "ephemeral": {"runtime": "shell"}, "action": "ask", "prompt": "p"}]},
        {"delegations": [{"id": "a", "ephemeral": {"runtime": "runtime_a"}, "action": "implement", "prompt": "p"}]},
        {"human_questions": [{"id": "q"}]},
        {"changes_made": [1]},
    ],
)
def test_what_the_validator_refuses_does_not_fit(change: Body) -> None:
    body = {"decision": "approved", "summary": "ok", **change}
    assert validate({KEY: body}).faults
    assert not fits({KEY: body}, SCHEMA)


def test_every_object_of_ours_is_closed_and_every_field_described() -> None:
    for name, node in SCHEMA["$defs"].items():
        assert node["description"], name
        if "properties" in node:
            assert node["additionalProperties"] is False
            assert all(field["description"] for field in node["properties"].values()), name
    assert set(SCHEMA["$defs"]) >= {"ServiceResult", "Delegation", "Ephemeral", "HumanQuestion", "Decision"}
    json.dumps(SCHEMA)


def test_every_value_has_a_meaning() -> None:
    assert all(list(meanings) in ([], list(kind)) for kind, meanings in MEANINGS.items())


class TestExplanation:
    def test_it_names_every_field_and_value(self) -> None:
        text = explain_contract()
        for model in (ServiceResult, Delegation, Ephemeral, HumanQuestion):
            assert all(f"{name} (" in text for name in model.model_fields)
        assert all(value in text for kind in MEANINGS for value in kind)

    def test_it_is_short(self) -> None:
        assert len(explain_contract().encode()) <= 5_000

    @pytest.mark.ruling("P4")
    def test_a_leaf_is_told_the_result_alone(self) -> None:
        text = explain_contract(Form.LEAF)
        assert len(text.encode()) <= 2_000
        assert "This job can't delegate: leave `delegations` out, what is in it is never run." in text
        named = {name for name in ServiceResult.model_fields if f"\n- {name} (" in text}
        assert named == ServiceResult.model_fields.keys() - {"delegations", "artifact_body"}
        assert "|".join(Decision) in text
        assert "children" not in text
        assert "ephemeral" not in text

    @pytest.mark.ruling("P4")
    def test_another_agent_is_told_in_a_sentence_that_it_may_delegate(self) -> None:
        text = explain_contract(Form.SHORT)
        assert len(text.encode()) <= 2_000
        assert "`delegations`, each an object with `id`, `agent`, `action` and `prompt`" in text
        assert "ephemeral" not in text

    def test_it_names_the_width_of_its_tree(self) -> None:
        assert "delegations (array of object, max 5 of them)" in explain_contract(width=5)

    @pytest.mark.ruling("P4")
    @pytest.mark.parametrize(("name", "form"), [("coordinator", Form.WHOLE), ("leaf", Form.LEAF)])
    def test_its_whole_text(self, name: str, form: Form) -> None:
        """`GOLDEN=write` writes the golden files."""
        text, golden = explain_contract(form), Path(__file__).parent / "golden" / f"{name}.md"
        if os.environ.get("GOLDEN") == "write":
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")
