"""The contract's examples. Their placeholders are refused by `validate` (ruling P6), so an echoed example is no
result.
"""

from workflows.contract.models import Action, SynthesisRule

DECISION = "<decision>"
SUMMARY = "<what you did and found>"
_PART, _CHECK = "<what to do, complete>", "<what to check, and how>"
_FILE, _CHANGE, _COMMAND, _OUTPUT = "<file>", "<what changed>", "<command>", "<how it ended>"

PLACEHOLDERS = frozenset({SUMMARY, _PART, _CHECK, _FILE, _CHANGE, _COMMAND, _OUTPUT})
"""Texts of the examples that a writer has to replace. `<decision>`, `<runtime>` and `<policy>` are refused like every
unknown value.
"""

MINIMAL: dict[str, object] = {
    "decision": DECISION,
    "summary": SUMMARY,
    "changes_made": [{"path": _FILE, "summary": _CHANGE}],
    "tests_run": [{"command": _COMMAND, "result": _OUTPUT}],
}
DELEGATING: dict[str, object] = {
    "decision": DECISION,
    "summary": SUMMARY,
    "delegations": [
        {"id": "build", "agent": "backend", "action": Action.IMPLEMENT, "prompt": _PART},
        {
            "id": "check",
            "ephemeral": {"runtime": "<runtime>", "autonomy_policy": "<policy>"},
            "action": Action.REVIEW,
            "prompt": _CHECK,
            "deps": ["build"],
            "synthesis_rule": SynthesisRule.VERIFY,
        },
    ],
}
