import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from workflows.contract.schema import OF_DELEGATIONS, schema, strict_schema, tool_schema
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


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def strictly(result: Body, node: Body) -> Body:
    """Write an object as a strict schema wants it: with all its members, and with values of any shape as texts."""
    whole: Body = {}
    for name, member in node["properties"].items():
        shape = member["anyOf"][0] if "anyOf" in member else member
        value = result.get(name)
        if value is None or name not in result:
            whole[name] = None
        elif shape["type"] == "object":
            whole[name] = strictly(value, shape)
        elif shape["type"] == "array" and shape["items"]["type"] == "object":
            whole[name] = [strictly(item, shape["items"]) for item in value]
        elif shape["type"] == "array":
            whole[name] = [as_text(item) for item in value]
        else:
            whole[name] = as_text(value) if shape["type"] == "string" else value
    return whole


@pytest.mark.ruling("S6")
@given(bodies())
@settings(max_examples=cases(20, 100))
def test_every_valid_result_fits_the_form_for_each_program(body: Body) -> None:
    """Of a leaf's result without what only delegating needs; the strict form is valid, too, as it was written."""
    for leaf in (False, True):
        kept = {name: value for name, value in body.items() if not (leaf and name in OF_DELEGATIONS)}
        verdict = validate({KEY: kept})
        assert verdict.result is not None
        canonical = json.loads(canonical_json(verdict.result))
        for name in OF_DELEGATIONS if leaf else ():
            canonical[KEY].pop(name, None)
        assert fits(canonical, tool_schema(leaf=leaf))
        strict = strict_schema(leaf=leaf)
        written = strictly(canonical, strict)
        assert fits(written, strict)
        again = validate(written)
        assert again.result is not None, again.faults
        assert again.result.delegations == verdict.result.delegations
        assert (again.result.decision, again.result.summary) == (verdict.result.decision, verdict.result.summary)


@pytest.mark.ruling("S6")
def test_the_form_for_a_tool_is_small_and_says_what_the_schema_says() -> None:
    leaf, whole = tool_schema(leaf=True), tool_schema(width=5)
    assert len(json.dumps(leaf)) <= 2_600
    assert len(json.dumps(whole)) <= 7_500
    assert set(ServiceResult.model_fields) - set(leaf["properties"][KEY]["properties"]) == {*OF_DELEGATIONS}
    assert whole["properties"][KEY]["properties"]["delegations"]["maxItems"] == 5
    for form in (leaf, whole, strict_schema()):
        names = set(members(form))
        assert names.isdisjoint({"$ref", "$defs", "$schema", "allOf", "if"})
        assert all(value in json.dumps(form) for value in Decision)
    assert schema() == SCHEMA, "the contract's own is left as it was"


@pytest.mark.ruling("S6")
def test_a_strict_form_has_nothing_that_a_model_cannot_be_forced_to() -> None:
    def check(node: Body) -> None:
        assert node.keys() <= {"type", "description", "enum", "properties", "required", "additionalProperties", "items"}
        for member in node.get("properties", {}).values():
            check(member["anyOf"][0] if "anyOf" in member else member)
        if node["type"] == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == [*node["properties"]]
        if node["type"] == "array":
            check(node["items"])

    check(strict_schema())


def members(node: Any) -> Iterator[str]:
    for name, value in node.items() if isinstance(node, dict) else ():
        yield name
        yield from members(value)
    for item in node if isinstance(node, list) else ():
        yield from members(item)


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
    @pytest.mark.parametrize(
        ("name", "form", "tool"),
        [
            ("coordinator", Form.WHOLE, ""),
            ("leaf", Form.LEAF, ""),
            ("coordinator-by-tool", Form.WHOLE, "ResultTool"),
            ("leaf-by-tool", Form.LEAF, "ResultTool"),
        ],
    )
    def test_its_whole_text(self, name: str, form: Form, tool: str) -> None:
        """`GOLDEN=write` writes the golden files."""
        text, golden = explain_contract(form, tool=tool), Path(__file__).parent / "golden" / f"{name}.md"
        if os.environ.get("GOLDEN") == "write":
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")
