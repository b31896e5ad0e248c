"""The table of commands that agents may call, with alternatives to the others (ruling N5).

Agents look, propose and check their results. Whatever starts work outside their tree, spends, decides, or changes the
service's settings is for people. A command that is missing here is refused to agents, and a test fails.
"""

SERVED = frozenset(
    {
        *("agent list", "agent show", "attention", "completion candidates", "daemon status", "doctor"),
        *("github comment-preview", "github status", "help", "host list", "host show"),
        *("job branches", "job diff", "job events", "job gate"),
        *("job list", "job reviews", "job show", "job tree"),
        *("memory list", "memory propose", "memory recall", "memory show"),
        *("pipeline list", "pipeline runs", "pipeline show", "pipeline watch", "repo list"),
        *("result check", "result render", "result schema", "runtime check", "runtime list", "spend"),
    }
)

_ASK = "put it to people: `human_questions` in its result; then: service result check"
_DELEGATE = "have it done in its own tree: `delegations` in its result; then: service result check"
SAY = "say in its result what is to be done and why; then: service result check"
_PROPOSE = 'service memory propose KEY "CONTENT"'
_LOOK = "service job show JOB, service job tree JOB, service attention"
_RECIPES = ("orchestrate decompose-and-verify", "orchestrate review-panel", "orchestrate verifier")

INSTEAD = {
    "resume": _ASK,
    **dict.fromkeys(("agent ask", "agent implement", "agent review", "pipeline run", *_RECIPES), _DELEGATE),
    **dict.fromkeys(("memory add", "memory confirm", "memory retire"), _PROPOSE),
    **dict.fromkeys(("daemon logs", "dashboard", "job log", "job prompt"), _LOOK),
    **dict.fromkeys(
        (
            *("agent add", "agent allow", "agent deny", "agent remove", "backup"),
            *("bridge serve", "bridge token", "bridge token add", "bridge token list", "bridge token remove"),
            *("cluster init", "completion bash", "completion fish", "completion zsh"),
            *("config check", "config show"),
            *("daemon install", "daemon run", "daemon start", "daemon stop", "daemon uninstall", "demo", "gc"),
            *("github sync", "host answer", "host drain", "host invite", "host join", "host lost"),
            *("host remove", "host replace-key", "init"),
            *("job close", "job dismiss", "job drop", "job kill", "job merge"),
            *("job note", "job open", "job publish", "job resolve", "job retry", "job review", "job revise"),
            *("mcp", "mcp add", "mcp list", "mcp remove"),
            *("pipeline add", "pipeline cancel", "pipeline disable", "pipeline enable", "pipeline remove"),
            *("repo add", "repo remove", "repo sweep", "restore"),
        ),
        SAY,
    ),
}
"""Commands for people only, each with what an agent should do instead."""

READS, WRITES, DESTROYS = "reads", "writes", "destroys"
_WRITTEN_BY_AGENTS = {"memory propose"}
_READ_BY_PEOPLE = {
    *("bridge token list", "config check", "config show", "daemon logs", "dashboard"),
    *("job log", "job prompt", "mcp list"),
}
_DESTROYS = {
    *("agent remove", "bridge token", "bridge token remove", "gc", "github sync", "host remove"),
    "host replace-key",
    *(
        "host lost",
        "mcp remove",
        "job dismiss",
        "job drop",
        "job kill",
        "pipeline cancel",
        "pipeline remove",
        "repo remove",
        "repo sweep",
        "resume abort",
    ),
}


def effect(command: str) -> str:
    """Return the most that a command does with any of its options: `reads`, `writes`, or `destroys`, which removes or
    ends something irrevocably.
    """
    if command in _DESTROYS:
        return DESTROYS
    return READS if command in SERVED - _WRITTEN_BY_AGENTS | _READ_BY_PEOPLE else WRITES
