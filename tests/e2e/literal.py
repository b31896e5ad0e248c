"""A model that does what its prompt says, literally, and knows nothing else: `obey`.

`TABLE` is all it obeys: words of a prompt, and the habit that they teach it. What a model brings along itself stands in
`PARTS` and `files`: its plan for the goal, and code with a fault on purpose. As a scenario of the scripted model it
drives the real programs; as a command, this module is a program in place of codex and claude.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = {
    "answers itself": "delegate nothing",
    "changes by a leg": "a goal that changes files needs a leg with `implement`",
    "asks to be told": 'With `"failure_policy": "escalate"` you are told every outcome',
    "says how to tell": "how to tell that it is done: the commands to run",
    "looks for commands": "How it is built and tested stands in files such as AGENTS.md",
    "has it checked": "a check by somebody who did not do the work",
    "checked by one that runs": "an agent that can run the tests and did none of the work",
    "gives the policy": "A job that has to run builds or tests, as a check has, needs the policy beside it",
    "checks later": "put the check of both into your next set",
    "checks again": "Put a verify leg into the set again",
    "may run": "commands run, builds and tests too",
    "looks at the diff": "...HEAD` shows what was done since the task began",
    "runs or is blocked": "If you could not run them, it is not checked: `blocked`",
    "keeps both": "Edit the files until both are kept and no marker is left",
    "brings it there": "To bring it there: an implement leg",
    "tests the merge": "whose task is to resolve what conflicts, and to run the tests",
    "is not its failure": "A test that fails for another reason is no failure of yours",
    "tries again": "A leg that failed may be issued again with a narrower prompt",
    "says implemented": "`implemented` when the goal asked for changes, and the line has them",
}
"""The words of a prompt, by the habit that they teach."""
WITHOUT = "[without: {}]"
SLIPS, RIGHT, APART = "[the last part fails at first]", "[the limit is right at once]", "[the parts keep apart]"
MARKS, ONE, EPHEMERAL = "[the markers stay at first]", "[one part]", "[workers of its own]"
"""Words of an order that this model, and no other, understands."""
WHO = re.compile(r"^You are `.+?`, doing the job `\S+` \((\w+)\) on the repository", re.MULTILINE)
AGENT = re.compile(r"^- `(?P<name>[\w-]+)` \((?P<runtime>\w+); (?P<can>[a-z, ]+); (?P<more>[^)]*)\)", re.MULTILINE)
POLICY = re.compile(r"^- `(\w+)` \([^)]*\): `([\w-]+)`", re.MULTILINE)
DIFF = re.compile(r"`(git diff [^`]+)`")
LEFT_OUT = re.compile(
    r'Not on the line: leg `(\S+?)`.*?To bring it there: an implement leg with `"worktree": "(\S+?)"`'
)
MERGING = re.compile(r"The merge of `\S+` is begun in your folder\. It conflicts.*? in (`.*?`): what you began from")
CHECKED = re.compile(r"^### Leg `check-\S+`: succeeded, approved$", re.MULTILINE)
LOST = re.compile(r"^### Leg `(\S+)`: failed\b", re.MULTILINE)
FAILED = re.compile(r"^- \*\*(.*?)\*\* \(high\)", re.MULTILINE)
IMPORTED = "`python3 -c 'import limits'` ends with exit code 0"
PARTS = {
    "limiter": f"Write `limits.py` with `allowed(calls)`: three calls pass, a fourth does not. Done when {IMPORTED}.",
    "notes": "Write `NOTES.md`: how many calls pass. Done when it is there.",
}
"""The plan that a model makes of the goal."""
NARROWER = "Do this, and nothing else."
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
COMMAND = re.compile("`(python3 .+?)`")
ENDED = re.compile(r"it ended with (\d+)")
Result = dict[str, Any]
Work = Generator[dict[str, Any], str, Result]
"""A job's steps, as those of a scenario: it is sent the output of each call, and returns its result."""


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
    def title(self) -> str:
        title = TITLE.search(self.text)
        return title[1] if title else ""

    @property
    def task(self) -> str:
        return self.section("# Task").partition(">\n")[2].partition("\n</data-")[0]

    def worker(self, action: str, *, runs: bool) -> Result:
        """Return the first agent listed for an action; if asked for, one that runs tests where there is one.

        An order may want a worker of its own in place of the agent, on the agent's runtime.
        """
        able = [agent for agent in AGENT.finditer(self.text) if action in agent["can"].split(", ")]
        running = [agent for agent in able if "runs builds and tests" in agent["more"]]
        agent = (running if runs and running else able)[0]
        if EPHEMERAL not in self.text:
            return {"agent": agent["name"]}
        policy = dict(POLICY.findall(self.text))[agent["runtime"]] if self.says("gives the policy") else "read-only"
        return {"ephemeral": {"runtime": agent["runtime"], "autonomy_policy": policy}}


def parts(prompt: Prompt) -> list[str]:
    """Return the parts of the plan; an order may want the first one alone."""
    return list(PARTS)[: 1 if ONE in prompt.text else None]


def files(prompt: Prompt, part: str) -> dict[str, str]:
    """Return the files that a model writes for a part; nobody asked the limiter's leg for notes."""
    if part == "notes":
        return {"NOTES.md": "# Notes\n\nThree calls are allowed.\n"}
    compared = "<=" if RIGHT in prompt.text else "<"
    code = {"limits.py": f"LIMIT = 3\n\n\ndef allowed(calls):\n    return calls {compared} LIMIT\n"}
    return code | ({} if APART in prompt.text else {"NOTES.md": "# Notes\n\nThe limit is in limits.py.\n"})


def leading(prompt: Prompt) -> Work:
    """Plan, go on with what is left, or end."""
    if prompt.says("answers itself"):
        return {"decision": "approved", "summary": "There are no folders."}
    if prompt.title == "Job":
        if not prompt.says("changes by a leg"):
            return {"decision": "approved", "summary": "Wrote it myself; it needs nobody else."}
        legs = [leg(prompt, part, PARTS[part]) for part in parts(prompt)]
        return (yield from planned(prompt, f"Parts: {len(legs)}.", legs, checked=prompt.says("has it checked")))
    legs = yield from left(prompt)
    if "verification failed" in prompt.title:
        if not legs:
            return {
                "decision": "blocked",
                "summary": "No finding that a leg can repair.",
                "needs": ["a check that ran"],
            }
        return (yield from planned(prompt, "Repair it, and check again.", legs, checked=prompt.says("checks again")))
    checks = "your delegations have ended" in prompt.title and prompt.says("has it checked")
    if legs or (checks and not CHECKED.search(prompt.text)):
        return (yield from planned(prompt, "Bring it together, and check it.", legs, checked=checks))
    decision = "implemented" if prompt.says("says implemented") else "approved"
    return {
        "decision": "blocked" if "Final" in prompt.title else decision,
        "summary": "The limiter and its notes are on the line, and checked.",
    }


def left(prompt: Prompt) -> Generator[dict[str, Any], str, list[Result]]:
    """Return a leg for each part that is named as left out, and one for what a check found, or what failed."""
    legs = []
    lost = LOST.findall(prompt.text) if prompt.says("tries again") else []
    for part, worktree in LEFT_OUT.findall(prompt.text) if prompt.says("brings it there") else ():
        task, name = "Resolve what conflicts, and keep both.", f"resolve-{part}"
        if name in lost:
            task, name = f"{task} {NARROWER}", f"{name}-again"
        if prompt.says("tests the merge"):
            task += f" Done when you have run {(yield from commands_of(prompt))}."
        legs.append(leg(prompt, name, task, worktree=worktree))
    if faults := dict.fromkeys(FAILED.findall(prompt.text)):
        legs.append(leg(prompt, "repair", f"Repair `limits.py`: {'; '.join(faults)}. Done when {IMPORTED}."))
    legs += [leg(prompt, f"{part}-again", f"{PARTS[part]} {NARROWER}") for part in lost if part in PARTS]
    return legs


def planned(prompt: Prompt, summary: str, legs: list[Result], *, checked: bool) -> Work:
    """Return a set of legs, with their check unless it is to come in the next set, or in none."""
    if checked and not (len(legs) > 1 and prompt.says("checks later")):
        commands = yield from commands_of(prompt)
        task = f"Check the goal: three calls pass, a fourth does not, and NOTES.md says so. Run {commands}."
        worker = prompt.worker("review", runs=prompt.says("checked by one that runs"))
        deps = [leg["id"] for leg in legs]
        last = {
            "id": f"check-{'-'.join(deps) or 'all'}",
            "action": "review",
            "prompt": task,
            "deps": deps,
        }
        legs = [*legs, last | worker | {"synthesis_rule": "verify"} | escalating(prompt)]
    return {"decision": "approved", "summary": summary, "delegations": legs}


def leg(prompt: Prompt, name: str, task: str, **more: Any) -> Result:
    worker = prompt.worker("implement", runs=True)
    words = task if prompt.says("says how to tell") else task.partition(" Done when")[0]
    return {"id": name, "action": "implement", "prompt": words} | worker | escalating(prompt) | more


def escalating(prompt: Prompt) -> Result:
    return {"failure_policy": "escalate"} if prompt.says("asks to be told") else {}


def commands_of(prompt: Prompt) -> Generator[dict[str, Any], str, str]:
    """Return the command that tests the repository, if the prompt says where it stands."""
    page = (yield {"read_file": {"path": "AGENTS.md"}}) if prompt.says("looks for commands") else ""
    command = re.search("Tests: (`.+?`)", page)
    return command[1] if command else "what you find"


def building(prompt: Prompt) -> Work:
    """Write what the task says, resolve the merge that was begun, and run what the task says to run."""
    merging = MERGING.search(prompt.text)
    part = next((part for part, task in PARTS.items() if task.partition(" Done when")[0] in prompt.task), None)
    edits, written = dict[str, str](), dict[str, str]()
    slips = (MARKS if merging else SLIPS) in prompt.text and NARROWER not in prompt.task
    if slips and merging:
        return {"decision": "implemented", "summary": "I think that git has merged it."}
    if slips and part == parts(prompt)[-1]:
        return {"decision": "failed", "summary": "I don't know how many calls pass."}
    if merging and prompt.says("keeps both"):
        edits = dict.fromkeys(re.findall("`(.+?)`", merging[1]), r"/^\(<<<<<<<\|=======\|>>>>>>>\)/d")
    elif "Repair `limits.py`" in prompt.task:
        edits = {"limits.py": "s/calls < LIMIT/calls <= LIMIT/"}
    elif part:
        written = files(prompt, part)
    for path, text in written.items():
        yield {"write_file": {"path": path, "content": text}}
    for path, edit in edits.items():
        yield {"run": f"sed -i {shlex.quote(edit)} {shlex.quote(path)}"}
    changed = [*written, *edits]
    ran = yield from run(COMMAND.findall(prompt.task.partition("Done when")[2]))
    right = (merging and prompt.says("is not its failure")) or all(command["exit_code"] == 0 for command in ran)
    decision = "skipped" if not changed else "implemented" if right else "failed"
    return {"decision": decision, "summary": f"Wrote {', '.join(changed)}.", "tests_run": ran} | {
        "changes_made": [{"path": path, "summary": "written"} for path in changed]
    }


def checking(prompt: Prompt) -> Work:
    """Run the commands of the task, and decide by how they ended."""
    if not prompt.says("may run"):
        if prompt.says("runs or is blocked"):
            return {"decision": "blocked", "summary": "Nothing was run.", "needs": ["a policy that runs tests"]}
        return {"decision": "approved", "summary": "Read it; nothing was run."}
    if prompt.says("looks at the diff"):
        shown = yield from run(DIFF.findall(prompt.text))
        if lost := [command["command"] for command in shown if command["exit_code"] != 0]:
            return {"decision": "blocked", "summary": f"These show nothing: {', '.join(lost)}.", "needs": lost}
    ran = yield from run(COMMAND.findall(prompt.task.partition("Run ")[2]))
    if not ran:
        return {"decision": "blocked", "summary": "I know of no command to run.", "needs": ["the commands"]}
    failed = [command for command in ran if command["exit_code"] != 0]
    if failed:
        finding = {"title": "the third call is refused", "severity": "high", "file": "limits.py"}
        return {"decision": "changes_requested", "summary": "A test fails.", "findings": [finding], "tests_run": ran}
    return {"decision": "approved", "summary": "All tests pass.", "tests_run": ran}


def run(commands: Iterable[str]) -> Generator[dict[str, Any], str, list[Result]]:
    """Run commands. One whose end is not shown was not run."""
    ran = []
    for line in commands:
        shown = ENDED.findall((yield {"run": f'{line}; echo "it ended with $?"'}))
        ran += [{"command": line, "exit_code": int(shown[-1])}] if shown else []
    return ran


def obey(text: str) -> Generator[dict[str, Any], str, None]:
    """Do what a prompt says, by the action that it names, and end with the result."""
    action = WHO.search(text)
    work = {"ask": leading, "implement": building, "review": checking}[action[1] if action else "ask"]
    yield {"result": (yield from work(Prompt(text)))}


def answer(text: str) -> Result:
    """Return the result for a prompt, with its calls done here."""
    play = obey(text)
    step = next(play)
    while "result" not in step:
        step = play.send(done(step))
    result: Result = step["result"]
    return result


def done(step: dict[str, Any]) -> str:
    """Do the call of a step in this folder, and return its output."""
    match step:
        case {"write_file": {"path": path, "content": content}}:
            Path(path).write_text(content)
            return ""
        case {"read_file": {"path": path}}:
            return Path(path).read_text() if Path(path).exists() else ""
        case _:
            ran = subprocess.run(step["run"], shell=True, check=False, capture_output=True, text=True)
            return ran.stdout


def main(words: Sequence[str], environ: dict[str, str]) -> None:
    """Print the answer as codex or claude prints it, by the words of the call."""
    claude = "--permission-mode" in words
    if "--version" in words:
        sys.stdout.write("2.1.329 (Claude Code)\n" if environ["LITERAL"] == "claude" else "codex-cli 0.169.0\n")
        return
    text = json.dumps({"service_result": answer(sys.stdin.read())})
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
