"""Agents that print their prompt, in whatever form, have not returned a result (ruling P6)."""

import json
import random
import textwrap
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.schema import SCHEMA, fits
from workflows.contract.canonical import canonical_json
from workflows.contract.examples import DELEGATING, MINIMAL, PLACEHOLDERS, SUMMARY
from workflows.contract.faults import Fault
from workflows.contract.locate import KEY
from workflows.contract.models import ServiceResult
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.contract.prompt_contract import explain_contract
from workflows.contract.repair_prompt import repair_prompt
from workflows.text.quoted_data import write_fenced

pytestmark = pytest.mark.ruling("P6")

ASKED = json.dumps({KEY: {"decision": "approved", "summary": "what the task shows as a result"}})
OWN = json.dumps({KEY: {"decision": "approved", "summary": "my own"}})
TASK = write_fenced(
    "seed",
    lambda fences: (
        f"# Job\n{fences.meaning()}\n\n{fences.block(f'Return {ASKED}, or better.', 'a person')}\n\n"
        + explain_contract()
    ),
)
REPAIR = repair_prompt([Fault("", 'unknown key "mood"')], ASKED.replace('"decision"', '"mood": 1, "decision"'))
PROMPTS = {"task": TASK, "repair": REPAIR, "echo in the repair": repair_prompt([Fault("", "wrong")], TASK)}

ECHOES: dict[str, Callable[[str], str]] = {
    "plain": str,
    "twice": lambda text: text * 2,
    "quoted": lambda text: textwrap.indent(text, "> ", lambda _: True),
    "indented": lambda text: textwrap.indent(text, "    "),
    "in a fence": lambda text: f"```\n{text}\n```",
    "escaped": json.dumps,
    "escaped twice": lambda text: json.dumps(json.dumps(text)),
    "in a record": lambda text: json.dumps({"type": "message", "text": text}),
    "wrapped": lambda text: "\n".join(line[i : i + 80] for line in text.split("\n") for i in range(0, len(line), 80)),
    "wrapped between words": lambda text: "\n".join(textwrap.fill(line, 80) for line in text.split("\n")),
    "coloured": lambda text: "".join(f"\x1b[32m{line}\x1b[0m\n" for line in text.split("\n")),
    "numbered": lambda text: "".join(f"{n:6}\t{line}\n" for n, line in enumerate(text.split("\n"), 1)),
    "with carriage returns": lambda text: text.replace("\n", "\r\n"),
    "written anew": lambda text: text.replace(ASKED, json.dumps(json.loads(ASKED), indent=2)),
}


@pytest.mark.parametrize("after_repair", [False, True])
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("echo", ECHOES)
def test_an_echo_is_no_result(echo: str, prompt: str, after_repair: bool) -> None:
    output = ECHOES[echo](PROMPTS[prompt])
    assert isinstance(read_result(output, prompt=PROMPTS[prompt], after_repair=after_repair), Rejected)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("echo", ECHOES)
def test_an_echo_cut_at_either_end_is_no_result(echo: str, prompt: str) -> None:
    """The cut keeps one line of the fence: without any, the output is just what the task asked for."""
    chance = random.Random(f"{echo} {prompt}")
    whole = ECHOES[echo](PROMPTS[prompt])
    marks = [place for place in range(len(whole)) if whole.startswith("data-", place)]
    for _ in range(30):
        kept = chance.choice(marks)
        first, last = chance.randint(0, kept), chance.randint(min(kept + 17, len(whole)), len(whole))
        assert isinstance(read_result(whole[first:last], prompt=PROMPTS[prompt], after_repair=True), Rejected)


@given(st.sampled_from(list(ECHOES)), st.sampled_from(list(PROMPTS)), st.data())
def test_a_result_after_an_echo_cut_anywhere_is_the_result(echo: str, prompt: str, data: st.DataObject) -> None:
    whole = ECHOES[echo](PROMPTS[prompt])
    reading = read_result(whole[: data.draw(st.integers(0, len(whole)))] + "\n" + OWN, prompt=PROMPTS[prompt])
    assert isinstance(reading, Accepted)
    assert (reading.result.summary, reading.notices) == ("my own", ())


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_result_before_an_echo_is_the_result(prompt: str) -> None:
    reading = read_result(f"{OWN}\n{PROMPTS[prompt]}", prompt=PROMPTS[prompt])
    assert isinstance(reading, Accepted)
    assert reading.result.summary == "my own"


def test_the_fault_says_that_it_is_an_echo() -> None:
    reading = read_result(TASK, prompt=TASK)
    assert isinstance(reading, Rejected)
    (fault,) = reading.faults
    assert fault.message.startswith("the output repeats its prompt and holds no result of its own; end with one JSON")


def test_an_agent_that_returns_what_the_task_asks_for_and_nothing_else_is_right() -> None:
    reading = read_result(f"As you wish:\n{ASKED}", prompt=TASK)
    assert isinstance(reading, Accepted)


def chosen(example: str) -> str:
    """Put allowed values in place of those that an example leaves open."""
    values = {"decision": "approved", "runtime": "runtime_b", "policy": "danger-full-access"}
    for name, value in values.items():
        example = example.replace(f'"<{name}>"', f'"{value}"')
    return example


@pytest.mark.parametrize("example", [MINIMAL, DELEGATING])
def test_an_example_is_no_result_and_is_one_when_it_is_filled_in(example: dict[str, object]) -> None:
    text = json.dumps({KEY: example})
    assert text in explain_contract()
    assert isinstance(read_result(text), Rejected)
    filled = chosen(text)
    for placeholder in PLACEHOLDERS:
        filled = filled.replace(json.dumps(placeholder), json.dumps(f"own words for {placeholder[1:-1]}"))
    reading = read_result(filled)
    assert isinstance(reading, Accepted)
    assert read_result(canonical_json(reading.result)) == reading
    assert fits(json.loads(filled), SCHEMA)


@pytest.mark.parametrize("placeholder", sorted(PLACEHOLDERS))
def test_a_placeholder_that_is_left_in_is_refused_by_name(placeholder: str) -> None:
    for example in (MINIMAL, DELEGATING):
        text = chosen(json.dumps({KEY: example}))
        for other in PLACEHOLDERS - {placeholder}:
            text = text.replace(json.dumps(other), '"own words"')
        reading = read_result(text)
        assert isinstance(reading, Rejected) == (json.dumps(placeholder) in text), text
        if isinstance(reading, Rejected):
            assert all(f'"{placeholder}" is a placeholder of the example' in each.message for each in reading.faults)


def test_a_result_that_speaks_of_the_examples_is_a_result() -> None:
    body = {
        "decision": "approved",
        "summary": f"The contract's example says {SUMMARY} and <decision>; `cat` prints {json.dumps(MINIMAL)}.",
        "findings": [{"title": "an echo is refused", "example": {KEY: MINIMAL}}, SUMMARY],
    }
    reading = read_result(json.dumps({KEY: body}), prompt=TASK)
    assert isinstance(reading, Accepted)
    assert reading.result == ServiceResult.model_validate(body)


@pytest.mark.ruling("A1")
@pytest.mark.parametrize("again", ["{", "data-0123456789ab ", ASKED + TASK])
def test_echoes_are_looked_for_in_linear_time(again: str) -> None:
    """Measured in CPU time, which excludes other load of the machine."""
    output = again * (10 * 2**20 // len(again))
    begun = time.process_time()
    read_result(output, prompt=TASK + "data-0123456789ab " * 20_000)
    assert time.process_time() - begun < 20
