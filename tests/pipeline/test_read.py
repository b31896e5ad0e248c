"""Definitions are read strictly, and every fault is reported at once (ruling K1)."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.contract.models import Decision
from workflows.pipeline.definition import AgentStage, Definition, ShellStage
from workflows.pipeline.read import MOST_BYTES, MOST_STAGES, DefinitionError, read
from workflows.pipeline.syntax import Format

pytestmark = pytest.mark.ruling("K1")

WHOLE = """
name: nightly
repo: acme/shop
enabled: false
schedule: {cron: "0 3 * * 1-5", jitter: 5m, timezone: Europe/Rome}
stages:
  - {id: lint, kind: shell, command: "make lint", env: {LEVEL: high}, timeout: 90s, retry: 2}
  - id: build
    kind: shell
    command: [make, "all of it"]
    needs: [lint]
  - id: review
    kind: agent
    needs: [lint, build]
    ephemeral: {runtime: runtime_a, autonomy_policy: read-only}
    action: review
    prompt: Is it good?
    model: deep
    effort: high
    success: [approved, changes_requested]
"""
TOML = """
name = "tiny"
[[stages]]
id = "ask"
kind = "agent"
agent = "scout"
action = "ask"
prompt = "What is new?"
"""

SUCCESS = 'stages[2] (id "c"): success must be of approved, implemented, skipped, changes_requested'


def faults(text: str, format_: Format = Format.YAML) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        read(text, format_)
    return [fault.message for fault in caught.value.faults]


def stage(**fields: object) -> dict[str, object]:
    return {"id": "a", "kind": "shell", "command": "true"} | fields


def of(*stages: dict[str, object], **fields: object) -> str:
    """Return a definition in JSON, which is YAML."""
    return json.dumps({"name": "p", "stages": list(stages)} | fields)


def test_a_whole_yaml_file_is_read() -> None:
    definition = read(WHOLE, Format.YAML)
    lint, build, review = definition.stages
    assert (definition.name, definition.repo, definition.enabled) == ("nightly", "acme/shop", False)
    assert definition.schedule is not None
    assert (definition.schedule.cron, definition.schedule.jitter, definition.schedule.timezone) == (
        "0 3 * * 1-5",
        "5m",
        "Europe/Rome",
    )
    assert isinstance(lint, ShellStage)
    assert isinstance(build, ShellStage)
    assert isinstance(review, AgentStage)
    assert (lint.command, lint.env, lint.timeout, lint.retry) == (
        ("sh", "-c", "make lint"),
        {"LEVEL": "high"},
        "90s",
        2,
    )
    assert (build.command, build.needs) == (("make", "all of it"), ("lint",))
    assert review.ephemeral is not None
    assert review.success == (Decision.APPROVED, Decision.CHANGES_REQUESTED)


def test_a_toml_file_is_read() -> None:
    definition = read(TOML, Format.TOML)
    (ask,) = definition.stages
    assert isinstance(ask, AgentStage)
    assert (definition.repo, definition.enabled, ask.agent) == (None, True, "scout")
    assert ask.success == (Decision.APPROVED, Decision.IMPLEMENTED, Decision.SKIPPED)


def test_every_fault_is_reported_at_once_with_the_nearest_key() -> None:
    text = of(
        stage(comand="x", retry=-1, timeout=5, env={"1X": "a", "SERVICE_X": "b", "N": 1}),
        stage(id="b", kind="agnet"),
        {"id": "c", "kind": "agent", "action": "reviw", "prompt": " ", "success": ["aproved", "failed"]},
        repos="acme/shop",
        enabled="yes",
        schedule={"cron": "nope", "interval": "1h", "timezon": "x"},
    )
    assert faults(text) == [
        'enabled must be true or false, not "yes"',
        'schedule.cron must be a cron expression such as "0 3 * * 1-5" or "@daily"',
        "schedule.cron or interval is required: set exactly one of them",
        'schedule has the unknown key "timezon"; did you mean "timezone"?',
        'stages[0] (id "a"): timeout must be a string with a unit, such as "5s" or "5m"',
        'stages[0] (id "a"): retry must be 0 or more',
        'stages[0] (id "a"): env has the name "1X": letters, digits and _ only, no digit first',
        'stages[0] (id "a"): env has the name "SERVICE_X": names that begin with SERVICE_ are the service\'s own',
        'stages[0] (id "a"): env.N must be a string, not a number',
        'stages[0] (id "a"): unknown key "comand"; did you mean "command"?',
        'stages[1] (id "b"): kind must be one of shell, agent, not "agnet"; did you mean "agent"?',
        'stages[2] (id "c"): action must be one of ask, review, implement, not "reviw"; did you mean "review"?',
        'stages[2] (id "c"): agent or ephemeral is required: set exactly one of them',
        'stages[2] (id "c"): prompt is required',
        f'{SUCCESS}, not "aproved"; did you mean "approved"?',
        f'{SUCCESS}, not "failed"',
        'unknown key "repos"; did you mean "repo"?',
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (of(), "stages is required: a pipeline has at least one stage"),
        (of(stage(), stage()), 'stages[1] (id "a"): id is already used by stages[0]'),
        (of(stage(needs=["a"])), 'stages[0] (id "a"): needs must not name the stage itself: "a"'),
        (
            of(stage(id="build"), stage(needs=["biuld"])),
            'stages[1] (id "a"): needs names "biuld", which is not a stage of this pipeline; did you mean "build"?',
        ),
        (of(stage(needs=["b"]), stage(id="b", needs=["a"])), "stages have a cycle in needs: a -> b -> a"),
        (of(stage(command=[])), 'stages[0] (id "a"): command is required'),
        (of(stage(success=["approved"])), 'stages[0] (id "a"): unknown key "success"'),
        (of(stage(), repo="shop"), "repo must be OWNER/NAME"),
        (of(stage(), name="a b"), 'name must be 1 to 64 letters, digits, ".", "_" or "-"'),
        (of(stage(), schedule={"interval": "10ms"}), "schedule.interval must be at least 1s"),
        (of(stage(), schedule={"interval": "1h", "timezone": "UTC"}), "schedule.timezone is only of use with cron"),
        (of(*(stage(id=f"s{n}") for n in range(MOST_STAGES + 1))), f"stages are more than {MOST_STAGES}"),
        (of(stage(retry=11)), 'stages[0] (id "a"): retry must be at most 10'),
        (of(stage(retry=10**30)), 'stages[0] (id "a"): retry must be at most 10'),
        ("name: a\nname: b\nstages: [{id: a, kind: shell, command: x}]", "name is given more than once"),
        ("- 1", "a pipeline must be an object, not an array"),
        ("a: &x [1]\nb: *x", "this is not valid YAML: aliases are not allowed (line 2, column 4)"),
        ("[" * 200, "this is not valid YAML: it is nested too deeply (line 1, column 101)"),
        ("a: b: c", "this is not valid YAML: mapping values are not allowed here (line 1, column 5)"),
        ("a: !!python/object/apply:os.system [ls]", "this is not valid YAML: could not determine a constructor"),
        ("#" * (MOST_BYTES + 1), "the file is larger than 256 KiB"),
    ],
)
def test_a_fault_has_a_sentence(text: str, fault: str) -> None:
    lines = faults(text)
    assert lines[0].startswith(fault), lines


def test_toml_that_is_none_says_where() -> None:
    assert faults("a = ", Format.TOML) == ["this is not valid TOML: Invalid value (at end of document)"]


def test_words_that_old_yaml_took_for_booleans_are_words() -> None:
    definition = read(
        "name: off\nenabled: false\nstages: [{id: no, kind: shell, command: y, env: {A: on}}]", Format.YAML
    )
    (only,) = definition.stages
    assert isinstance(only, ShellStage)
    assert (definition.name, definition.enabled, only.id, only.env) == ("off", False, "no", {"A": "on"})


@given(st.text(max_size=200), st.sampled_from(Format))
def test_no_text_breaks_the_reader(text: str, format_: Format) -> None:
    with contextlib.suppress(DefinitionError):
        assert isinstance(read(text, format_), Definition)


def asking(**fields: object) -> str:
    asked = {"id": "a", "kind": "agent", "agent": "scout", "action": "ask", "prompt": "What is new?"}
    return json.dumps({"name": "n", "stages": [asked | fields]})


@pytest.mark.ruling("L1")
def test_an_agent_s_stage_may_belong_to_a_pull_request_or_an_issue() -> None:
    for fields in ({"pull_request": 7}, {"issue": 3}, {}):
        [only] = read(asking(**fields), Format.YAML).stages
        assert isinstance(only, AgentStage)
        assert (only.pull_request, only.issue) == (fields.get("pull_request"), fields.get("issue"))


@pytest.mark.ruling("L1")
@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"pull_request": 7, "issue": 3}, "pull_request and issue are given: a stage belongs to one of them at most"),
        ({"pull_request": 0}, "pull_request must be 1 or more"),
        ({"issue": 2**31}, "issue must be at most 2147483647"),
        ({"issue": "3"}, 'issue must be an integer, not "3"'),
        ({"pull_request": True}, "pull_request must be an integer, not true"),
        ({"pull_requests": 3}, 'unknown key "pull_requests"; did you mean "pull_request"?'),
    ],
)
def test_what_a_stage_belongs_to_is_read_strictly(fields: dict[str, object], fault: str) -> None:
    assert faults(asking(**fields)) == [f'stages[0] (id "a"): {fault}']


@pytest.mark.ruling("L1")
def test_a_shell_stage_belongs_to_what_its_run_belongs_to() -> None:
    [fault] = faults(json.dumps({"name": "n", "stages": [stage(pull_request=7)]}))
    assert 'unknown key "pull_request"' in fault


@pytest.mark.ruling("K1")
@pytest.mark.parametrize("format_", Format)
def test_a_number_of_too_many_digits_is_refused_in_words_of_ours(format_: Format) -> None:
    long = "1" + "0" * 5_000
    text = f"retry: {long}" if format_ is Format.YAML else f"retry = {long}"
    with pytest.raises(DefinitionError, match=rf"^this is not valid {format_.upper()}: a number has too many digits"):
        read(text, format_)


@pytest.mark.ruling("Q4")
def test_a_stage_asks_for_labels_of_its_host() -> None:
    stage = {"id": "a", "kind": "shell", "command": "make", "require": ["gpu", "os:linux"], "prefer": ["fast"]}
    [read_] = read(json.dumps({"name": "n", "stages": [stage]}), Format.YAML).stages
    assert (read_.require, read_.prefer) == (("gpu", "os:linux"), ("fast",))
    with pytest.raises(DefinitionError, match='"cpu:8", which is not a label of a host'):
        read(json.dumps({"name": "n", "stages": [stage | {"require": ["cpu:8"]}]}), Format.YAML)
