"""The demo's agents, which need no model: each reads its prompt and answers as agents must.

They start in their job's worktree, with the prompt on standard input and the job in `SERVICE_*` variables. The last
`service_result` they print counts. The builder's first rate limiter has a deliberate fault, which the checker finds by
running it. The optional argument is the number of seconds each agent takes.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

Result = dict[str, object]

FAULTY = "def allowed(count: int, limit: int) -> bool:\n    return count <= limit\n"
RIGHT = "def allowed(count: int, limit: int) -> bool:\n    return count < limit\n"
CHECK = "from limiter import allowed; assert allowed(2, 3); assert not allowed(3, 3), 'a 4th call is allowed'"


def lead() -> Result:
    """Delegate, replan when verification fails, and sum up when it passes."""
    match os.environ["SERVICE_CONTINUATION"]:
        case "none":
            legs = [build("limiter", "Write limiter.py."), build("docs", "Write LIMITER.md.")]
            return delegate("Two parts and a check.", [*legs, check("limiter", "docs")])
        case "replan":
            fix = build("limiter-again", "Write limiter.py so that exactly `limit` calls pass.")
            return delegate("The check found a fault: once more.", [fix, check("limiter-again")])
        case _:
            return {
                "decision": "implemented",
                "summary": "The limiter is built and verified.",
            }


def builder() -> Result:
    """Write the files of its leg."""
    files = {
        "limiter": ("limiter.py", FAULTY),
        "limiter-again": ("limiter.py", RIGHT),
        "docs": ("LIMITER.md", "# Limiter\n\n`allowed(count, limit)`\n"),
    }
    asked = ("COMMENTS.md", "This script only notes that somebody asked for changes; a real agent makes them.\n")
    name, text = files.get(os.environ["SERVICE_DELEGATION_ID"], asked)
    Path(name).write_text(text)
    return {"decision": "implemented", "summary": f"Wrote {name}.", "changes_made": [f"{name}: new"]}


def checker() -> Result:
    """Run the built code, in a worktree with the merged branches of its dependencies."""
    ran = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=False)
    tests = [{"command": "python -c CHECK", "exit_code": ran.returncode}]
    if ran.returncode == 0:
        return {"decision": "approved", "summary": "The limiter does what it should.", "tests_run": tests}
    fault = {"title": ran.stderr.strip().splitlines()[-1], "severity": "blocking", "path": "limiter.py"}
    return {
        "decision": "changes_requested",
        "summary": "One call too many passes.",
        "findings": [fault],
        "tests_run": tests,
    }


def build(leg: str, prompt: str) -> Result:
    return {"id": leg, "agent": "builder", "action": "implement", "prompt": prompt, "phase": "implement"}


def check(*deps: str) -> Result:
    prompt = "Run limiter.py; ask for changes if it lets a call too many through."
    leg: Result = {"id": f"verify-{deps[0]}", "agent": "checker", "action": "review", "prompt": prompt}
    return leg | {"deps": list(deps), "synthesis_rule": "verify", "phase": "gate"}


def delegate(summary: str, legs: list[Result]) -> Result:
    return {"decision": "approved", "summary": summary, "delegations": legs}


def main() -> None:
    """Play the agent that `SERVICE_AGENT` names."""
    prompt = sys.stdin.read()
    time.sleep(float(sys.argv[1]) if sys.argv[1:] else 0)
    print(json.dumps({"type": "usage", "input_tokens": len(prompt) // 4, "output_tokens": 200}))
    result = {"lead": lead, "builder": builder, "checker": checker}[os.environ["SERVICE_AGENT"]]()
    print(json.dumps({"service_result": result}, indent=2))


if __name__ == "__main__":
    main()
