"""Every rule of the result object by example: the exact lines, all of them, in order."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.strategies import JSON, Body, bodies
from tests.depth import cases
from workflows.contract.faults import MOST, lines
from workflows.contract.locate import KEY
from workflows.contract.models import Delegation, Ephemeral, HumanQuestion, ServiceResult
from workflows.contract.parse import Accepted, read_result
from workflows.contract.validate import validate

GOOD: Body = {"decision": "approved", "summary": "ok"}
LEG: Body = {"id": "a", "agent": "alice", "action": "ask", "prompt": "p"}
WORKER: Body = {"runtime": "runtime_a"}


def faults(**members: Any) -> list[str]:
    """Return the lines for a valid result with these members changed."""
    return [fault.message for fault in validate({KEY: {**GOOD, **members}}).faults]


def leg_faults(**members: Any) -> list[str]:
    """Return the lines for a valid delegation with these members changed, without their prefix."""
    lines = faults(delegations=[{**LEG, **members}])
    assert all(line.startswith('delegations[0] (id "a"): ') for line in lines), lines
    return [line.removeprefix('delegations[0] (id "a"): ') for line in lines]


class TestDecisionAndSummary:
    @pytest.mark.ruling("A4")
    def test_nothing_is_everything_required(self) -> None:
        assert [f.message for f in validate({KEY: {}}).faults] == ["decision is required", "summary is required"]

    @pytest.mark.ruling("A7")
    @pytest.mark.parametrize("decision", ["Approved", "approve", " approved", "APPROVED", "done"])
    def test_a_near_miss_names_the_allowed_values(self, decision: str) -> None:
        (line,) = faults(decision=decision)
        allowed = "approved, changes_requested, blocked, implemented, failed, skipped"
        assert line.startswith(f'decision must be one of {allowed}, not "{decision}"')

    @pytest.mark.ruling("A7")
    def test_a_value_of_another_kind(self) -> None:
        assert faults(decision=1, summary=["x"]) == [
            "decision must be a string, not a number",
            "summary must be a string, not an array",
        ]

    @pytest.mark.ruling("A4")
    @pytest.mark.parametrize("value", [None, 1, "x", [], True])
    def test_the_result_must_be_an_object(self, value: Any) -> None:
        (fault,) = validate({KEY: value}).faults
        assert fault.message.startswith("service_result must be an object, not ")
        assert fault.path == ""


class TestUnknownKeys:
    @pytest.mark.ruling("A3")
    def test_everywhere_with_the_nearest_known_one(self) -> None:
        leg: Body = {**LEG, "agent": None, "ephemeral": {**WORKER, "runtim": 1}, "dependson": [], "promt": "x"}
        question: Body = {"id": "q", "prompt": "p", "choice": []}
        body: Body = {**GOOD, "sumary": 1, "zzz": 2, "delegations": [leg], "human_questions": [question]}
        verdict = validate({KEY: body, "x": 1})
        assert [(fault.path, fault.message) for fault in verdict.faults] == [
            (
                "delegations[0].ephemeral.runtim",
                'delegations[0] (id "a"): ephemeral has the unknown key "runtim"; did you mean "runtime"?',
            ),
            ("delegations[0].dependson", 'delegations[0] (id "a"): unknown key "dependson"'),
            ("delegations[0].promt", 'delegations[0] (id "a"): unknown key "promt"; did you mean "prompt"?'),
            (
                "human_questions[0].choice",
                'human_questions[0] (id "q"): unknown key "choice"; did you mean "choices"?',
            ),
            ("sumary", 'unknown key "sumary"; did you mean "summary"?'),
            ("zzz", 'unknown key "zzz"'),
            ("", 'unknown key "x" beside service_result'),
        ]
        assert all(fault.unknown_key for fault in verdict.faults)

    @pytest.mark.ruling("A3")
    def test_next_agents_has_its_own_sentence(self) -> None:
        assert faults(next_agents=[]) == ["next_agents was replaced by delegations: list the follow-up jobs there"]

    @pytest.mark.ruling("A3")
    def test_the_free_form_parts_have_none(self) -> None:
        anything = {"whatever": 1, "say": "x"}
        assert faults(findings=[anything], changes_made=[anything], artifact_body=anything) == []


class TestEntries:
    @pytest.mark.ruling("A6")
    def test_null_and_absent_arrays_are_empty(self) -> None:
        assert faults(**dict.fromkeys(set(ServiceResult.model_fields) - {"decision", "summary"})) == []

    @pytest.mark.ruling("A6")
    @pytest.mark.parametrize("name", ["changes_made", "tests_run", "needs"])
    def test_a_string_or_an_object_that_says_something(self, name: str) -> None:
        assert faults(**{name: ["x", {"path": "a.py"}, {"command": "make", "exit_code": 0}, {"other": "kept"}]}) == []
        assert faults(**{name: [" ", {"exit_code": 0}, {"path": ""}, 1, None, ["x"]]}) == [
            f"{name}[0] must not be blank",
            f"{name}[1] must have at least one string value, such as path or command or summary",
            f"{name}[2] must have at least one string value, such as path or command or summary",
            f"{name}[3] must be a string or an object, not a number",
            f"{name}[4] must be a string or an object, not null",
            f"{name}[5] must be a string or an object, not an array",
        ]
        assert faults(**{name: "x"}) == [f"{name} must be an array of strings or objects, not a string"]

    @pytest.mark.ruling("spec:result.findings")
    def test_findings_are_free_form(self) -> None:
        assert faults(findings=["", {}, {"a": {"b": [1]}}, [[1], 2]]) == []
        assert faults(findings=[1, None]) == [
            "findings[0] must be a string or an object, not a number",
            "findings[1] must be a string or an object, not null",
        ]


class TestDelegations:
    @pytest.mark.ruling("A4", "spec:validation.required")
    def test_every_required_field_of_every_entry(self) -> None:
        assert faults(delegations=[{}, {"id": "b", "agent": "x", "prompt": " "}, "c"]) == [
            'delegations[0] (id "<missing>"): id is required',
            'delegations[0] (id "<missing>"): agent or ephemeral is required',
            'delegations[0] (id "<missing>"): action is required',
            'delegations[0] (id "<missing>"): prompt is required',
            'delegations[1] (id "b"): action is required',
            'delegations[1] (id "b"): prompt is required',
            'delegations[2] (id "<missing>"): must be an object, not a string',
        ]

    @pytest.mark.ruling("A4")
    def test_each_field_keeps_its_place(self) -> None:
        wrong: Body = {
            "phase": 1, "effort": 1, "model": 1, "fingerprint": 1, "artifacts": "x", "worktree": "/x", "retry": -1,
            "timeout": "0s", "quorum": 0, "synthesis_rule": "x", "failure_policy": "x", "deps": ["a"], "prompt": 1,
            "action": "x", "ephemeral": 1, "agent": 1, "id": "-",
        }  # fmt: skip
        named = [
            fault.path.removeprefix("delegations[0].")
            for fault in validate({KEY: {**GOOD, "delegations": [wrong]}}).faults
        ]
        fields = list(dict.fromkeys(named))
        assert fields == [*Delegation.model_fields, "artifact_body"]

    @pytest.mark.ruling("A9")
    @pytest.mark.parametrize("own_id", ["a", "A.b_c-9", "0", "x" * 64])
    def test_ids_that_are_fine(self, own_id: str) -> None:
        assert faults(delegations=[{**LEG, "id": own_id}]) == []

    @pytest.mark.ruling("A9")
    @pytest.mark.parametrize("own_id", ["-a", ".a", "a b", "a/b", "x" * 65, "é", "a\n", "a\0"])
    def test_ids_that_are_not(self, own_id: str) -> None:
        lines = faults(delegations=[{**LEG, "id": own_id}])
        rule = 'id must be 1 to 64 letters, digits, ".", "_" or "-", beginning with a letter or digit'
        assert lines[-1].endswith(rule)
        assert all("\n" not in line and "\0" not in line for line in lines)

    @pytest.mark.ruling("spec:validation.unique")
    def test_ids_are_unique(self) -> None:
        assert faults(delegations=[LEG, {**LEG, "agent": "bob"}, LEG]) == [
            'delegations[1] (id "a"): id is already used by delegations[0]',
            'delegations[2] (id "a"): id is already used by delegations[0]',
        ]

    @pytest.mark.ruling("spec:validation.worker")
    def test_exactly_one_of_agent_and_ephemeral(self) -> None:
        assert leg_faults(ephemeral=WORKER) == ["agent and ephemeral are both set; set exactly one of them"]
        assert leg_faults(agent=None) == ["agent or ephemeral is required"]
        assert leg_faults(agent="", ephemeral=WORKER) == []
        assert leg_faults(agent="alice", ephemeral=None) == []

    @pytest.mark.ruling("A7")
    @pytest.mark.parametrize("name", ["action", "failure_policy", "synthesis_rule"])
    def test_enumerations_are_exact(self, name: str) -> None:
        (line,) = leg_faults(**{name: "Review"})
        assert line.startswith(f"{name} must be one of ")

    @pytest.mark.ruling("A7")
    def test_blank_is_not_set_where_a_field_is_optional(self) -> None:
        optional = set(Delegation.model_fields) - {"id", "agent", "ephemeral", "action", "prompt"}
        assert leg_faults(**dict.fromkeys(optional)) == []
        assert leg_faults(timeout="", failure_policy="", worktree=" ", model="") == []

    @pytest.mark.ruling("spec:validation.deps")
    def test_deps_name_siblings(self) -> None:
        prefix = 'delegations[0] (id "build"): '
        first = {**LEG, "id": "build", "deps": ["check", "biuld", "build", "biuld"]}
        assert faults(delegations=[first, {**LEG, "id": "check"}]) == [
            f'{prefix}deps names "biuld", which is not a delegation of this result; did you mean "build"?',
            f'{prefix}deps must not name the delegation itself: "build"',
        ]
        assert leg_faults(deps=[1, ""]) == [
            "deps[0] must be a string that is not blank",
            "deps[1] must be a string that is not blank",
        ]

    @pytest.mark.ruling("A4", "spec:validation.cycle")
    def test_a_cycle_names_its_path(self) -> None:
        legs = [{**LEG, "id": own_id, "deps": [dep]} for own_id, dep in ("ab", "bc", "ca", "dd", "ed")]
        assert faults(delegations=legs) == [
            'delegations[3] (id "d"): deps must not name the delegation itself: "d"',
            "delegations have a cycle in deps: a -> b -> c -> a",
        ]

    @pytest.mark.ruling("C5", "spec:validation.quorum")
    def test_a_quorum_counts_a_repeated_fingerprint_once_as_the_ballot_does(self) -> None:
        legs = [{**LEG, "id": each, "fingerprint": "same"} for each in ("a", "b")]
        legs += [{**LEG, "id": "c", "synthesis_rule": "quorum", "quorum": 3}, {**LEG, "id": "d", "fingerprint": " "}]
        assert faults(delegations=legs) == []
        assert faults(delegations=legs[:3]) == [
            'delegations[2] (id "c"): quorum must not exceed the number of delegations that run (2)'
        ]

    @pytest.mark.ruling("A8", "spec:validation.quorum")
    @pytest.mark.parametrize(
        ("rule", "quorum", "expected"),
        [
            ("quorum", 1, []),
            ("quorum", None, ["quorum is required"]),
            ("quorum", 0, ["quorum must be greater than 0"]),
            ("quorum", -1, ["quorum must be greater than 0"]),
            ("quorum", 2, ["quorum must not exceed the number of delegations that run (1)"]),
            ("quorum", True, ["quorum must be an integer, not true"]),
            ("quorum", 2.0, ["quorum must be an integer, not 2.0"]),
            ("quorum", "50%", ['quorum must be an integer, not "50%"']),
            ("vote", 1, ["quorum is only allowed when synthesis_rule is quorum"]),
            (None, 1, ["quorum is only allowed when synthesis_rule is quorum"]),
            ("", 1, ["quorum is only allowed when synthesis_rule is quorum"]),
            ("verify", None, []),
        ],
    )
    def test_quorum(self, rule: str | None, quorum: Any, expected: list[str]) -> None:
        assert leg_faults(synthesis_rule=rule, quorum=quorum) == expected

    @pytest.mark.ruling("A10", "spec:validation.timeout")
    @pytest.mark.parametrize(
        ("timeout", "says"),
        [
            ("0s", "must be positive"),
            ("-1m", "must be positive"),
            (30, 'must be a string with a unit, such as "30s" or "30m"'),
            ("30", 'needs a unit: write "30s" for seconds or "30m" for minutes'),
            ("soon", 'must be a duration such as "90s"'),
            (True, "must be a string, not a boolean"),
        ],
    )
    def test_timeout(self, timeout: Any, says: str) -> None:
        (line,) = leg_faults(timeout=timeout)
        assert line.startswith(f"timeout {says}")

    @pytest.mark.ruling("spec:validation.retry")
    @pytest.mark.parametrize(
        ("retry", "expected"),
        [(0, []), (3, []), (-1, ["retry must be 0 or more"]), (1.0, ["retry must be an integer, not 1.0"])],
    )
    def test_retry(self, retry: Any, expected: list[str]) -> None:
        assert leg_faults(retry=retry) == expected

    @pytest.mark.ruling("I3")
    @pytest.mark.parametrize("name", ["shared", "team/api", "a.b-c_d", "y" * 200])
    def test_a_worktree_is_a_relative_name(self, name: str) -> None:
        assert leg_faults(worktree=name) == []

    @pytest.mark.ruling("O2", "O6")
    def test_reserved_names_of_a_worktree(self) -> None:
        for name in ("@base", "@merge:docs", "@merge:a.b-c_d"):
            assert leg_faults(worktree=name, action="implement") == []
        for name in ("@", "@merge", "@merge:", "@merge:../x", "@Base"):
            (line,) = leg_faults(worktree=name, action="implement")
            assert line.startswith('worktree is not known: "@base" and "@merge:LEG"'), name
        (line,) = leg_faults(worktree="@merge:docs", action="review")
        assert line == "worktree begins a merge, which takes the action implement"

    @pytest.mark.ruling("I3")
    @pytest.mark.parametrize(
        "name",
        [
            "/x",
            "..",
            "../x",
            "a/../b",
            "a//b",
            "a/",
            ".git",
            "~",
            "-x",
            "a\\b",
            "a\nb",
            "x y",
            "a..b",
            "a.",
            "a.lock",
            "é",
            "a/b.lock/c",
            "y" * 201,
        ],
    )
    def test_a_worktree_is_never_outside(self, name: str) -> None:
        (line,) = leg_faults(worktree=name)
        assert line.startswith("worktree must be a relative name")

    @pytest.mark.ruling("spec:validation.artifacts")
    def test_artifacts_need_a_body(self) -> None:
        legs = [{**LEG, "id": own_id, "artifacts": ["plan.md"]} for own_id in "abcde"]
        needed = (
            "artifact_body is required, because delegations[0], delegations[1], delegations[2] and 2 more set artifacts"
        )
        assert faults(delegations=legs) == [needed]
        assert faults(delegations=legs, artifact_body=" ") == [needed]
        assert faults(delegations=[{**LEG, "artifacts": []}]) == []
        bodies: list[Any] = ["x", {}, [], 0, False]
        assert all(faults(delegations=legs, artifact_body=body) == [] for body in bodies)
        assert faults(delegations=[{**LEG, "artifacts": ["../x"]}], artifact_body="x") != []

    @pytest.mark.ruling("spec:result.skipped")
    def test_skipped_cannot_delegate(self) -> None:
        assert faults(decision="skipped", delegations=[LEG]) == ["delegations must be empty when decision is skipped"]
        assert faults(decision="skipped", delegations=[]) == []

    @pytest.mark.ruling("spec:limits.width")
    def test_width_is_not_validated_here(self) -> None:
        assert faults(delegations=[{**LEG, "id": f"l{n}"} for n in range(100)]) == []


class TestEphemeral:
    @pytest.mark.ruling("A7", "spec:ephemeral.runtime")
    @pytest.mark.parametrize("runtime", ["shell", "runtime_d", "Runtime_a", "claude"])
    def test_a_registered_runtime_never_shell(self, runtime: str) -> None:
        (line,) = leg_faults(agent=None, ephemeral={"runtime": runtime})
        assert line.startswith(f'ephemeral.runtime must be one of runtime_a, runtime_b, runtime_c, not "{runtime}"')

    @pytest.mark.ruling("A4")
    def test_its_faults_stand_in_the_entry(self) -> None:
        spec = {"role": 1, "capabilities": "x", "autonomy_policy": "full", "model": []}
        assert leg_faults(agent=None, ephemeral=spec) == [
            "ephemeral.runtime is required",
            "ephemeral.model must be a string, not an array",
            "ephemeral.role must be a string, not a number",
            "ephemeral.capabilities must be an array of strings, not a string",
            'ephemeral.autonomy_policy must be one of auto, read-only, workspace-write, danger-full-access, not "full"',
        ]
        assert leg_faults(agent=None, ephemeral="x") == ["ephemeral must be an object, not a string"]

    @pytest.mark.ruling("spec:validation.write_policy")
    @pytest.mark.parametrize(
        ("policy", "given"),
        [(None, "and is not set"), ("", "and is not set"), ("auto", "not auto"), ("read-only", "not read-only")],
    )
    @pytest.mark.parametrize("by", ["action", "capability", "loosely"])
    def test_one_that_implements_must_be_allowed_to_write(self, policy: str | None, given: str, by: str) -> None:
        action = "implement" if by == "action" else "ask"
        capabilities = {"capability": ["implement"], "loosely": [" Implement "]}.get(by, [])
        spec = {**WORKER, "capabilities": capabilities, "autonomy_policy": policy}
        rule = "ephemeral.autonomy_policy must be workspace-write or danger-full-access for a worker that implements"
        assert leg_faults(agent=None, action=action, ephemeral=spec) == [f"{rule}, {given}"]

    @pytest.mark.ruling("spec:validation.write_policy")
    def test_write_policies_and_readers_are_fine(self) -> None:
        for policy in ("workspace-write", "danger-full-access"):
            assert leg_faults(agent=None, action="implement", ephemeral={**WORKER, "autonomy_policy": policy}) == []
        for reader in (None, "", "auto", "read-only"):
            assert leg_faults(agent=None, action="review", ephemeral={**WORKER, "autonomy_policy": reader}) == []


class TestQuestions:
    @pytest.mark.ruling("A4", "spec:questions.shape")
    def test_their_lines_look_like_those_of_delegations(self) -> None:
        questions = [{"id": "q", "prompt": "p"}, {"id": "q", "choices": [1]}, {}, 1]
        assert faults(human_questions=questions) == [
            'human_questions[1] (id "q"): id is already used by human_questions[0]',
            'human_questions[1] (id "q"): prompt is required',
            'human_questions[1] (id "q"): choices[0] must be a string that is not blank',
            'human_questions[2] (id "<missing>"): id is required',
            'human_questions[2] (id "<missing>"): prompt is required',
            'human_questions[3] (id "<missing>"): must be an object, not a number',
        ]

    @pytest.mark.ruling("spec:questions.shape")
    @pytest.mark.parametrize("decision", ["approved", "blocked", "failed", "skipped"])
    def test_any_decision_may_ask(self, decision: str) -> None:
        assert faults(decision=decision, human_questions=[{"id": "q", "prompt": "p"}]) == []


class TestHygiene:
    @pytest.mark.ruling("A4")
    @pytest.mark.parametrize(
        ("raw", "line"),
        [
            (r'"findings": ["a\u0000b"]', "findings[0] contains a NUL character"),
            (
                r'"findings": [{"x y": "\ud800"}]',
                'findings[0]["x y"] contains a lone surrogate or a byte that is not UTF-8',
            ),
            (r'"findings": [{"\ud800": 1}]', "findings[0] has a member whose name contains a lone surrogate"),
            ('"artifact_body": {"a": [1, NaN]}', "artifact_body.a[1] is not a finite number"),
            ('"artifact_body": -Infinity', "artifact_body is not a finite number"),
            ('"artifact_body": 1e999', "artifact_body is not a finite number"),
            ('"artifact_body": ' + "9" * 5000, "artifact_body is not a finite number"),
            ('"summary": "again"', "summary is given more than once"),
            ('"findings": [{"a": 1, "a": 2}]', 'findings[0] has the member "a" more than once'),
            ('"findings": [' + '{"a":' * 101 + "1" + "}" * 101 + "]", "is nested deeper than 100 levels"),
            (
                '"delegations": [{"id": "a", "agent": "x", "action": "ask", "prompt": "p", "id": "b"}]',
                "id is given more than once",
            ),
        ],
    )
    def test_what_could_not_be_stored_is_a_fault(self, raw: str, line: str) -> None:
        reading = read_result('{"service_result": {"decision": "approved", "summary": "ok", ' + raw + "}}")
        assert not isinstance(reading, Accepted)
        assert line in lines(reading.faults)
        assert len(reading.faults) == 1

    @pytest.mark.ruling("A4")
    def test_no_output_makes_endless_faults(self) -> None:
        lines = faults(changes_made=[1] * 10_000)
        assert len(lines) == MOST + 1
        assert lines[-1] == f"and {10_000 - MOST:,} more faults of the same result"

    @pytest.mark.ruling("A4")
    def test_a_long_chain_is_no_recursion(self) -> None:
        legs = [{**LEG, "id": f"l{n}", "deps": [f"l{n + 1}"]} for n in range(255)]
        assert faults(delegations=[*legs, {**LEG, "id": "l255"}]) == []


@pytest.mark.ruling("A1", "A4")
@given(bodies())
@settings(max_examples=cases(20, 200))
def test_a_valid_result_has_no_faults_and_becomes_the_value(body: Body) -> None:
    verdict = validate({KEY: body})
    assert verdict.faults == ()
    assert verdict.result is not None
    assert verdict.result.summary == body["summary"]
    assert [leg.id for leg in verdict.result.delegations] == [leg["id"] for leg in body.get("delegations") or []]


KNOWN = sorted({name for model in (ServiceResult, Delegation, Ephemeral, HumanQuestion) for name in model.model_fields})
ODD = st.one_of(JSON, st.dictionaries(st.sampled_from(KNOWN), JSON, max_size=4), st.lists(JSON, max_size=3))


@pytest.mark.ruling("A4")
@given(bodies(), st.lists(st.tuples(st.sampled_from(KNOWN), ODD, st.integers(0, 9)), min_size=1, max_size=4))
@settings(max_examples=cases(30, 300))
def test_no_mutation_crashes_and_every_fault_is_one_line(body: Body, changes: list[tuple[str, Any, int]]) -> None:
    for name, value, place in changes:
        legs = body.get("delegations")
        inner = [leg for leg in legs if isinstance(leg, dict)] if place % 2 and isinstance(legs, list) else []
        (inner[place % len(inner)] if inner else body)[name] = value
    verdict = validate({KEY: body})
    assert (verdict.result is None) == any(not fault.unknown_key for fault in verdict.faults)
    assert all(fault.message and fault.message.isprintable() for fault in verdict.faults)
    json.dumps([fault.path for fault in verdict.faults])
