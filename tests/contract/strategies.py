"""Generated valid results, as an agent could have written them."""

from typing import Any

from hypothesis import strategies as st

from workflows.contract.models import AutonomyPolicy, Decision, FailurePolicy, Runtime, SynthesisRule

Body = dict[str, Any]

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
HOSTILE = st.sampled_from(
    ['{"', '"}', "\\", "{}", '{"service_result": {', '"service_result":', "```", "/service x", "}}", "\n"]
)
WORDS = st.one_of(TEXT, HOSTILE).map(lambda text: f"x{text}")
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,12}", fullmatch=True)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), TEXT
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
FINDINGS = st.lists(st.one_of(WORDS, OBJECTS, st.lists(JSON, max_size=2)), max_size=3)
EVIDENCE = st.lists(st.one_of(WORDS, OBJECTS.map(lambda entry: {**entry, "path": "src/x.py"})), max_size=2)
DURATIONS = st.sampled_from(["1ms", "90s", "30m", "1h30m", "2d", "1.5h"])


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    """Generate any of the fields, at times null."""
    return st.fixed_dictionaries({}, optional={name: st.one_of(st.none(), values) for name, values in fields.items()})


@st.composite
def ephemerals(draw: st.DrawFn, *, writes: bool) -> Body:
    policies = [policy for policy in AutonomyPolicy if not writes or "w" in policy or "danger" in policy]
    spec = draw(_optional(model=WORDS, effort=WORDS, template=WORDS, role=WORDS, capabilities=st.just(["review"])))
    return {**spec, "runtime": draw(st.sampled_from(list(Runtime))), "autonomy_policy": draw(st.sampled_from(policies))}


@st.composite
def delegations(draw: st.DrawFn) -> list[Body]:
    """Generate legs with unique ids, whose deps only name earlier ones."""
    ids = draw(st.lists(IDS, unique=True, max_size=4))
    legs = []
    for index, own_id in enumerate(ids):
        action = draw(st.sampled_from(["ask", "review", "implement"]))
        leg = draw(_optional(timeout=DURATIONS, retry=st.integers(0, 3), fingerprint=WORDS, model=WORDS, phase=WORDS))
        leg |= {"id": own_id, "action": action, "prompt": draw(WORDS)}
        worker = draw(st.one_of(WORDS, ephemerals(writes=action == "implement")))
        leg["ephemeral" if isinstance(worker, dict) else "agent"] = worker
        leg["deps"] = draw(st.lists(st.sampled_from(ids[:index]), unique=True)) if index else []
        leg |= draw(_optional(failure_policy=st.sampled_from(list(FailurePolicy))))
        rule = draw(st.sampled_from([None, *SynthesisRule]))
        leg |= {"synthesis_rule": rule} | ({"quorum": draw(st.integers(1, len(ids)))} if rule == "quorum" else {})
        legs.append(leg)
    prints = [leg["fingerprint"] for leg in legs if (leg.get("fingerprint") or "").strip()]
    for leg in legs:
        if leg.get("quorum"):
            leg["quorum"] = min(leg["quorum"], len(legs) - len(prints) + len(set(prints)))
    return legs


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Generate the content of `service_result`."""
    body = draw(
        _optional(findings=FINDINGS, changes_made=EVIDENCE, tests_run=EVIDENCE, needs=EVIDENCE, artifact_body=JSON)
    )
    body |= {"decision": draw(st.sampled_from(list(Decision))), "summary": draw(WORDS)}
    if body["decision"] != Decision.SKIPPED:
        body["delegations"] = draw(delegations())
    questions = draw(st.lists(IDS, unique=True, max_size=2))
    body["human_questions"] = [{"id": own_id, "prompt": draw(WORDS), "choices": ["x"]} for own_id in questions]
    return body
