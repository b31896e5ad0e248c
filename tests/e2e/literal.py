"""A program in place of codex and claude whose model does what its prompt says, literally, and knows nothing else.

`TABLE` is all it obeys: words of a prompt, and the habit that they teach it. What a model brings along itself stands in
`PARTS` and `FILES`: its plan for the goal, and code with a fault on purpose.
"""

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = {
    "changes by a leg": "a goal that changes files needs a leg with `implement`",
    "asks to be told": 'With `"failure_policy": "escalate"` you are told every outcome',
    "says how to tell": "how to tell that it is done: the commands to run",
    "looks for commands": "How it is built and tested stands in files such as AGENTS.md",
    "has it checked": "a check by somebody who did not do the work",
    "checked by one that runs": "an agent that can run the tests and did none of the work",
    "checks later": "put the check of both into your next set",
    "checks again": "Put a verify leg into the set again",
    "may run": "commands run, builds and tests too",
    "runs or is blocked": "If you could not run them, it is not checked: `blocked`",
    "keeps both": "Edit the files until both are kept and no marker is left",
    "tries again": "A leg that failed may be issued again with a narrower prompt",
    "says implemented": "`implemented` when the goal asked for changes, and the line has them",
}
"""The words of a prompt, by the habit that they teach."""
WITHOUT = "[without: {}]"
SLIPS = "[the notes fail at first]"
"""Words of an order that this model, and no other, understands."""
AGENT = re.compile(r"^- `(?P<name>[\w-]+)` \(\w+; (?P<can>[a-z, ]+); (?P<more>[^)]*)\)", re.MULTILINE)
LEFT_OUT = re.compile(
    r'Not on the line: leg `(\S+?)`.*?To bring it there: an implement leg with `"worktree": "(\S+?)"`'
)
MERGING = re.compile(r"The merge of `\S+` is begun in your folder\. It conflicts.*? in (`.*?`): what you began from")
CHECKED = re.compile(r"^### Leg `check-\S+`: succeeded, approved$", re.MULTILINE)
LOST = re.compile(r"^### Leg `(\w+)`: failed, failed$", re.MULTILINE)
FAILED = re.compile(r"^- \*\*(.*?)\*\* \(high\)", re.MULTILINE)
IMPORTED = "`python3 -c 'import limits'` ends with exit code 0"
PARTS = {
    "limiter": f"Write `limits.py` with `allowed(calls)`: three calls pass, a fourth does not. Done when {IMPORTED}.",
    "notes": "Write `NOTES.md`: how many calls pass. Done when it is there.",
}
"""The plan that a model makes of the goal."""
FAULTY = "LIMIT = 3\n\n\ndef allowed(calls):\n    return calls < LIMIT\n"
FILES = {
    "limiter": {"limits.py": FAULTY, "NOTES.md": "# Notes\n\nThe limit is in limits.py.\n"},
    "notes": {"NOTES.md": "# Notes\n\nThree calls are allowed.\n"},
}
"""The files that it writes; nobody asked the first leg for notes, and they conflict with the second's."""
MARKER = re.compile(r"^(<<<<<<<|=======|>>>>>>>).*\n", re.MULTILINE)
Result = dict[str, Any]


@dataclass(frozen=True)
class Prompt:
    """A prompt, read literally."""

    text: str

    def says(self, habit: str) -> bool:
        """Return whether the prompt teaches a habit; an order may name one that the model does not take up."""
        return TABLE[habit] in self.text and WITHOUT.format(habit) not in self.text

    def section(self, title: str) -> str:
        """Return what stands under a title, up to the next title of its rank."""
        rank = title.partition(" ")[0]
        return self.text.partition(f"\n{title}\n")[2].partition(f"\n{rank} ")[0]

    @property
    def task(self) -> str:
        return self.section("# Task").partition(">\n")[2].partition("\n</data-")[0]

    def agent(self, action: str, *, runs: bool) -> str:
        """Return the first agent listed for an action; if asked for, one that runs tests where there is one."""
        able = [(each["name"], each["more"]) for each in AGENT.finditer(self.text) if action in each["can"].split(", ")]
        names = [name for name, _ in able if name != "lead"]
        running = [name for name, more in able if "runs builds and tests" in more]
        return (running if runs and running else names)[0]


def leading(prompt: Prompt, name: str) -> Result:
    """Plan, go on with what is left, or end."""
    if name == "none":
        if not prompt.says("changes by a leg"):
            return {"decision": "approved", "summary": "Wrote it myself; it needs nobody else."}
        legs = [leg(prompt, part, task) for part, task in PARTS.items()]
        return planned(prompt, "Two parts.", legs, checked=prompt.says("has it checked"))
    legs, checks = left(prompt), name == "normal" and prompt.says("has it checked")
    if "# Continuation: verification failed" in prompt.text:
        if not legs:
            return {
                "decision": "blocked",
                "summary": "No finding that a leg can repair.",
                "needs": ["a check that ran"],
            }
        return planned(prompt, "Repair it, and check again.", legs, checked=prompt.says("checks again"))
    if legs or (checks and not CHECKED.search(prompt.text)):
        return planned(prompt, "Bring it together, and check it.", legs, checked=checks)
    decision = "implemented" if prompt.says("says implemented") else "approved"
    return {
        "decision": "blocked" if name == "finalize" else decision,
        "summary": "The limiter and its notes are on the line, and checked.",
    }


def left(prompt: Prompt) -> list[Result]:
    """Return a leg for each part that is named as left out, and one for what a check found, or what failed."""
    legs = []
    for part, worktree in LEFT_OUT.findall(prompt.text):
        task = "Resolve what conflicts, and keep both."
        legs.append(leg(prompt, f"resolve-{part}", task, worktree=worktree))
    if faults := FAILED.findall(prompt.text):
        legs.append(leg(prompt, "repair", f"Repair `limits.py`: {'; '.join(faults)}. Done when {IMPORTED}."))
    if prompt.says("tries again"):
        legs += [leg(prompt, f"{part}-again", PARTS[part]) for part in LOST.findall(prompt.text)]
    return legs


def planned(prompt: Prompt, summary: str, legs: list[Result], *, checked: bool) -> Result:
    """Return a set of legs, with their check unless it is to come in the next set, or in none."""
    if checked and not (len(legs) > 1 and prompt.says("checks later")):
        task = f"Check the goal: three calls pass, a fourth does not, and NOTES.md says so. Run {commands(prompt)}."
        agent = prompt.agent("review", runs=prompt.says("checked by one that runs"))
        deps = [each["id"] for each in legs]
        last = {
            "id": f"check-{'-'.join(deps) or 'all'}",
            "agent": agent,
            "action": "review",
            "prompt": task,
            "deps": deps,
        }
        legs = [*legs, last | {"synthesis_rule": "verify"} | escalating(prompt)]
    return {"decision": "approved", "summary": summary, "delegations": legs}


def leg(prompt: Prompt, name: str, task: str, **more: Any) -> Result:
    worker = prompt.agent("implement", runs=True)
    words = task if prompt.says("says how to tell") else task.partition(" Done when")[0]
    return {"id": name, "agent": worker, "action": "implement", "prompt": words} | escalating(prompt) | more


def escalating(prompt: Prompt) -> Result:
    return {"failure_policy": "escalate"} if prompt.says("asks to be told") else {}


def commands(prompt: Prompt) -> str:
    """Return the commands that build and test the repository, if the prompt says where they are."""
    there = prompt.says("looks for commands") and Path("AGENTS.md").exists()
    return Path("AGENTS.md").read_text().partition("Tests: ")[2].strip() if there else "what you find"


def building(prompt: Prompt, name: str) -> Result:
    """Write what the task says, resolve the merge that was begun, and run what the task says to run."""
    merging = MERGING.search(prompt.text)
    written = {}
    if merging and prompt.says("keeps both"):
        written = {path: MARKER.sub("", Path(path).read_text()) for path in re.findall("`(.+?)`", merging[1])}
    elif "Repair `limits.py`" in prompt.task:
        written = {"limits.py": Path("limits.py").read_text().replace("calls < LIMIT", "calls <= LIMIT")}
    elif name == "notes" and SLIPS in prompt.text:
        return {"decision": "failed", "summary": "I don't know how many calls pass."}
    elif name.removesuffix("-again") in FILES:
        written = FILES[name.removesuffix("-again")]
    for path, text in written.items():
        Path(path).write_text(text)
    ran = run(prompt.task.partition("Done when")[2])
    right = all(each["exit_code"] == 0 for each in ran)
    decision = "skipped" if not written else "implemented" if right else "failed"
    return {"decision": decision, "summary": f"Wrote {', '.join(written)}.", "tests_run": ran} | {
        "changes_made": [{"path": path, "summary": "written"} for path in written]
    }


def checking(prompt: Prompt, name: str) -> Result:
    """Run the commands of the task, and decide by how they ended."""
    del name
    if not prompt.says("may run"):
        if prompt.says("runs or is blocked"):
            return {"decision": "blocked", "summary": "Nothing was run.", "needs": ["a policy that runs tests"]}
        return {"decision": "approved", "summary": "Read it; nothing was run."}
    ran = run(prompt.task.partition("Run ")[2])
    if not ran:
        return {"decision": "blocked", "summary": "I know of no command to run.", "needs": ["the commands"]}
    failed = [each for each in ran if each["exit_code"] != 0]
    if failed:
        finding = {"title": "the third call is refused", "severity": "high", "file": "limits.py"}
        return {"decision": "changes_requested", "summary": "A test fails.", "findings": [finding], "tests_run": ran}
    return {"decision": "approved", "summary": "All tests pass.", "tests_run": ran}


def run(task: str) -> list[Result]:
    """Run the commands that stand in backticks."""
    lines = [line for line in re.findall("`(.+?)`", task) if line.startswith("python3 ")]
    return [
        {"command": line, "exit_code": subprocess.run(line, shell=True, check=False, capture_output=True).returncode}
        for line in lines
    ]


def answer(text: str, name: str) -> Result:
    """Return what a model that reads literally answers to a prompt, as the worker that the prompt names."""
    prompt = Prompt(text)
    worker = re.search(r"^You are `(\w+)`", text, re.MULTILINE)
    return {"lead": leading, "builder": building, "checker": checking}[worker[1] if worker else "lead"](prompt, name)


def main(words: Sequence[str], environ: dict[str, str]) -> None:
    """Print the answer as codex or claude prints it, by the words of the call."""
    claude = "--permission-mode" in words
    if "--version" in words:
        sys.stdout.write("2.1.329 (Claude Code)\n" if environ["LITERAL"] == "claude" else "codex-cli 0.169.0\n")
        return
    name = environ["SERVICE_DELEGATION_ID"] or environ["SERVICE_CONTINUATION"]
    text = json.dumps({"service_result": answer(sys.stdin.read(), name)})
    usage = {"input_tokens": 100, "output_tokens": 10}
    if claude:
        session = words[words.index("--session-id") + 1] if "--session-id" in words else str(uuid.uuid4())
        records: list[Result] = [
            {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": session}
            | {"usage": usage}
        ]
    else:
        records = [
            {"type": "thread.started", "thread_id": str(uuid.uuid4())},
            {"type": "item.completed", "item": {"type": "agent_message", "text": text}},
            {"type": "turn.completed", "usage": usage},
        ]
    sys.stdout.write("".join(f"{json.dumps(record)}\n" for record in records))


if __name__ == "__main__":
    main(sys.argv[1:], dict(os.environ))
