"""The demo's agent, with no model behind it: reads its prompt, looks at its worktree, and answers as agents must.

It is started in the worktree of its job, with the prompt on standard input; the last `service_result` it prints counts.
"""

import json
import subprocess
import sys


def main() -> None:
    """Answer with what can be seen from here, so that the answer proves where the agent ran."""
    prompt = sys.stdin.read()
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    print(f"read {len(prompt)} characters of prompt")
    print(json.dumps({"service_result": answer(files)}, indent=2))


def answer(files: list[str]) -> dict[str, object]:
    """The one object every job ends with."""
    return {
        "decision": "approved",
        "summary": f"The repository holds {len(files)} files: {', '.join(files)}.",
        "findings": [],
        "changes_made": [],
        "tests_run": [],
        "needs": [],
        "delegations": [],
    }


if __name__ == "__main__":
    main()
