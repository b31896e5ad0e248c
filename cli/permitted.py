"""Which commands agents may call, and what they do in place of the others (ruling N5): the one table.

Agents look, propose and check their results. What starts work outside their tree, spends, decides, or changes what the
service goes by is for people. A command that stands in neither part is refused, and fails a test.
"""

SERVED = frozenset(
    {
        "agent list",
        "agent show",
        "attention",
        "completion candidates",
        "daemon status",
        "doctor",
        "github comment-preview",
        "github status",
        "job branches",
        "job diff",
        "job events",
        "job gate",
        "job list",
        "job reviews",
        "job show",
        "job tree",
        "memory list",
        "memory propose",
        "memory recall",
        "memory show",
        "pipeline list",
        "pipeline runs",
        "pipeline show",
        "pipeline watch",
        "repo list",
        "result check",
        "result render",
        "result schema",
        "runtime check",
        "runtime list",
        "spend",
    }
)

_ASK = "put it to people: `human_questions` in its result; then: service result check"
_DELEGATE = "have it done in its own tree: `delegations` in its result; then: service result check"
SAY = "say in its result what is to be done and why; then: service result check"
_PROPOSE = 'service memory propose KEY "CONTENT"'
_LOOK = "service job show JOB, service job tree JOB, service attention"

INSTEAD = {
    "agent add": SAY,
    "agent allow": SAY,
    "agent ask": _DELEGATE,
    "agent deny": SAY,
    "agent implement": _DELEGATE,
    "agent remove": SAY,
    "agent review": _DELEGATE,
    "bridge serve": SAY,
    "bridge token": SAY,
    "bridge token add": SAY,
    "bridge token list": SAY,
    "bridge token remove": SAY,
    "cluster init": SAY,
    "completion bash": SAY,
    "completion fish": SAY,
    "completion zsh": SAY,
    "config check": SAY,
    "config show": SAY,
    "daemon run": SAY,
    "daemon start": SAY,
    "daemon stop": SAY,
    "dashboard": _LOOK,
    "github sync": SAY,
    "job close": SAY,
    "job dismiss": SAY,
    "job drop": SAY,
    "job kill": SAY,
    "job merge": SAY,
    "job note": SAY,
    "job open": SAY,
    "job publish": SAY,
    "job retry": SAY,
    "memory add": _PROPOSE,
    "memory confirm": _PROPOSE,
    "memory retire": _PROPOSE,
    "orchestrate decompose-and-verify": _DELEGATE,
    "orchestrate review-panel": _DELEGATE,
    "orchestrate verifier": _DELEGATE,
    "pipeline add": SAY,
    "pipeline cancel": SAY,
    "pipeline disable": SAY,
    "pipeline enable": SAY,
    "pipeline remove": SAY,
    "pipeline run": _DELEGATE,
    "repo add": SAY,
    "repo remove": SAY,
    "repo sweep": SAY,
    "resume": _ASK,
}
"""Commands for people, each with what an agent can do."""
