import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fenced import blocks
from tests.secrets.redaction_table import TOKENS
from workflows.contract.faults import Fault
from workflows.contract.prompt_contract import explain_contract, explain_shape
from workflows.contract.repair_prompt import repair_prompt, same_output
from workflows.text.invisible import visible

FAULTS = (
    Fault("summary", "summary is required"),
    Fault("delegations[0].id", 'delegations[0] (id "<missing>"): id is required'),
)


def previous_in(prompt: str) -> str:
    """Return the text inside the only block."""
    [(_, text)] = blocks(prompt)
    return text


@pytest.mark.ruling("A5", "spec:validation.one_repair")
def test_it_has_the_faults_one_per_line_the_shape_and_the_output() -> None:
    prompt = repair_prompt(FAULTS, "my output")
    assert '\n\nsummary is required\ndelegations[0] (id "<missing>"): id is required\n\n' in prompt
    assert explain_shape(["summary", "delegations[0].id"]) in prompt
    assert previous_in(prompt) == "my output"
    assert "without its first" not in prompt


@pytest.mark.ruling("A5", "S6")
def test_it_asks_for_the_programs_tool_if_that_takes_the_result() -> None:
    by_tool, by_message = repair_prompt(FAULTS, "my output", tool="ResultTool"), repair_prompt(FAULTS, "my output")
    assert "\nCall the tool ResultTool with the corrected JSON object, " in by_tool
    assert by_tool.replace("Call the tool ResultTool with", "Answer with") == by_message


SHAPES = {
    "summary": "Inside service_result:",
    "delegations[3].id": "Each entry of delegations",
    "delegations[3].ephemeral.runtime": "ephemeral:",
    'delegations[3].ephemeral["un known"]': "ephemeral:",
    "human_questions[0].choices[1]": "Each entry of human_questions:",
    "findings[0].title": "Inside service_result:",
    "": "Inside service_result:",
}


@pytest.mark.ruling("P4")
@pytest.mark.parametrize("path", SHAPES)
def test_it_tells_the_shape_of_what_is_wrong_alone(path: str) -> None:
    shape = explain_shape([path])
    assert {title for title in SHAPES.values() if f"\n{title}" in f"\n{shape}"} == {SHAPES[path]}
    assert ("\ndecision:\n" in shape) == (SHAPES[path] == "Inside service_result:")
    assert ('"delegations": [' in shape) == path.startswith("delegations")
    assert "Tiers to choose" not in shape
    assert len(repair_prompt([Fault(path, "x")], "").encode()) < len(explain_contract().encode()) * 0.8


@pytest.mark.ruling("P4")
def test_of_a_job_that_cannot_delegate_it_tells_nothing_of_delegations() -> None:
    shape = explain_shape(["delegations[0].id", "delegations[0].ephemeral.runtime", "summary"], leaf=True)
    assert "This job can't delegate" in shape
    assert "ephemeral" not in shape
    assert "artifact_body" not in shape


@pytest.mark.ruling("A5")
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50).map(visible), st.integers(0, 3))
def test_the_output_is_cut_to_its_end_between_characters(text: str, shift: int) -> None:
    output = "a" * shift + "é€😀" * 5_000 + text
    cut = previous_in(repair_prompt(FAULTS, output))
    assert 12_000 - 4 < len(cut.encode()) <= 12_000
    assert output.endswith(cut)


@pytest.mark.ruling("A5")
@given(st.text(st.sampled_from("`~\n x"), max_size=40))
def test_the_output_cannot_close_its_fence(output: str) -> None:
    assert previous_in(repair_prompt(FAULTS, output)) == output


@pytest.mark.ruling("A5", "A12")
def test_bytes_and_secrets_are_handled() -> None:
    token = TOKENS["GitHub personal"]
    prompt = repair_prompt(FAULTS, b"\xff" + token.encode() + b"x" * 11_990)
    assert token[-8:] not in prompt, "redacted before it is cut in two"
    assert token not in repair_prompt(FAULTS, f"the token is {token}, so")
    repair_prompt(FAULTS, "\ud800").encode()


@pytest.mark.ruling("A5")
def test_the_same_output_again_is_told_apart() -> None:
    assert same_output("a", b"a") == "the repair returned the same output, byte for byte, so its faults are the same"
    assert same_output("a", "a\n") is None
    assert same_output("\ud800", "\ud800") is not None
