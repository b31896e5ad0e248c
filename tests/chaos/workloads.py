"""Small trees to break: what their agents answer, what a person does, and how they end if no fault harms a run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ANSWER = "teal-7"
"""What a person answers; no prompt of the workloads has it."""
HUB = "acme/hub"
"""The repository that has a remote one."""
REAL = "real"
"""The agent that is a real program with a scripted model."""


@dataclass(frozen=True)
class Workload:
    """One tree, or one run of a pipeline."""

    name: str
    plans: Mapping[str, Mapping[str, Any] | str]
    """What agents return, by leg or continuation, `leg.2` for a second attempt: a result's fields, or a whole text."""
    states: Mapping[str, str]
    """The state of each job at the end, by leg or continuation."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """What agents do before they answer, in the shell."""
    agent: str = "lead"
    action: str = "implement"
    task: str = "done"
    resumes: tuple[tuple[str, str], ...] = ()
    """The verb and text with which a person ends each pause."""
    kills: str = ""
    """The leg that a person sees running, and then ends the tree; it ends once that is ordered."""
    at_once: bool = False
    """Whether that also stops what runs."""
    loses: str = ""
    """The leg whose host dies, once it runs there, so that it moves to the other one; it ends once it has moved."""
    repo: str = "acme/shop"
    pipeline: str = ""
    """The stages of its file; a run of it is started, and no tree of a person's."""
    by_form: bool = False
    """Whether a person answers by the form of an MCP task."""
    issue: bool = False
    """Whether it belongs to an issue on GitHub, where the service tells of it."""
    files: tuple[str, ...] = ()
    """The files that are on the task's branch at the end."""

    @property
    def needs(self) -> frozenset[str]:
        """Return what it needs of the stack."""
        needs = {"hosts": bool(self.loses), "model": self.agent == REAL}
        return frozenset(name for name, is_needed in needs.items() if is_needed)

    @property
    def has(self) -> frozenset[str]:
        """Return what some faults strike: agents that are scripts, or a model; a remote repository."""
        return frozenset({"model" if self.agent == REAL else "script", *(["hub"] if self.repo == HUB else [])})


def leg(name: str, action: str = "ask", agent: str = "dev", **more: object) -> dict[str, object]:
    return {"id": name, "agent": agent, "action": action, "prompt": f"do {name} of CASE"} | more


def legs(*made: Mapping[str, object]) -> dict[str, object]:
    return {"delegations": list(made)}


def good(*names: str) -> dict[str, str]:
    return dict.fromkeys(("none", *names), "succeeded")


IMPLEMENTED = {"decision": "implemented"}
FAILED = {"decision": "failed", "summary": "it went wrong"}
CHANGES = {"decision": "changes_requested"}
COLOR = {"human_questions": [{"id": "color", "prompt": "Which color?"}]}
WAITS = 'while [ ! -e "$plan/go" ]; do sleep 0.05; done'
WRITES = 'echo "$name" > "$name.txt"'
TWICE = '[ -e "$plan/said" ] && step=$step.again; touch "$plan/said"'
CAPPED = '[ -e "$plan/capped.asked" ] || limit="You have hit your usage limit"; touch "$plan/capped.asked"'
STAGES = """\
  - id: first
    kind: shell
    command: 'echo begin $SERVICE_RUN_ID $SERVICE_ATTEMPT first $$ $(date +%s.%N) >> "$PLANS/marks"; sleep 0.1; \
      echo end $SERVICE_RUN_ID $SERVICE_ATTEMPT first $$ $(date +%s.%N) >> "$PLANS/marks"'
  - {id: look, kind: agent, agent: lead, action: ask, prompt: 'look at CASE', needs: [first]}
  - {id: last, kind: shell, command: 'echo over', needs: [look]}
"""

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "pair",
            {
                "none": legs(leg("left", "implement"), leg("right", "implement")),
                "left": IMPLEMENTED,
                "right": IMPLEMENTED,
            },
            good("left", "right", "normal"),
            {"left": WRITES, "right": WRITES},
            files=("left.txt", "right.txt"),
        ),
        Workload(
            "chain",
            {
                "none": legs(leg("one", "implement"), leg("two", "implement", deps=["one"]), leg("see", deps=["two"])),
                "one": IMPLEMENTED,
                "two": IMPLEMENTED,
            },
            good("one", "two", "see", "normal"),
            {"one": WRITES, "two": WRITES},
            files=("one.txt", "two.txt"),
        ),
        Workload(
            "program",
            {"none": legs(leg("left", "implement", REAL), leg("right", agent=REAL)), "left": IMPLEMENTED},
            good("left", "right", "normal"),
            {"left": WRITES},
            agent=REAL,
            files=("left.txt",),
        ),
        Workload("readers", {"none": legs(leg("a"), leg("b"), leg("c"))}, good("a", "b", "c", "normal"), action="ask"),
        Workload(
            "retry",
            {"none": legs(leg("flaky", retry=2), leg("b")), "flaky.1": FAILED},
            good("flaky", "b", "normal"),
            action="ask",
        ),
        Workload(
            "continue",
            {"none": legs(leg("bad", failure_policy="continue"), leg("after", deps=["bad"]), leg("b")), "bad": FAILED},
            good("b", "normal") | {"bad": "failed", "after": "skipped"},
            action="ask",
        ),
        Workload(
            "escalate",
            {"none": legs(leg("bad", failure_policy="escalate"), leg("b")), "bad": FAILED},
            good("b", "normal") | {"bad": "failed"},
            action="ask",
        ),
        Workload(
            "block",
            {"none": legs(leg("bad"), leg("after", deps=["bad"])), "bad.1": FAILED},
            good("bad", "after", "normal"),
            action="ask",
        ),
        Workload(
            "decide",
            {"none": legs(leg("bad", failure_policy="escalate_human"), leg("b")), "bad.1": FAILED},
            good("bad", "b", "normal"),
            action="ask",
            resumes=(("retry", f"use {ANSWER}"),),
        ),
        Workload(
            "question",
            {"none": COLOR},
            good("answered"),
            action="ask",
            resumes=(("answer", f"color: {ANSWER}"),),
        ),
        Workload(
            "form",
            {"none": COLOR},
            good("answered"),
            action="ask",
            resumes=(("answer", f"color: {ANSWER}"),),
            by_form=True,
        ),
        Workload(
            "issue",
            {"none": COLOR},
            good("answered"),
            action="ask",
            resumes=(("answer", f"color: {ANSWER}"),),
            repo="acme/tool",
            issue=True,
        ),
        Workload(
            "limited",
            {"none": legs(leg("capped", agent="capped"), leg("b"))},
            good("capped", "b", "normal"),
            {"capped": CAPPED},
            action="ask",
        ),
        Workload(
            "asking-leg",
            {"none": legs(leg("curious"), leg("b")), "curious": COLOR},
            good("curious", "b", "answered"),
            action="ask",
            resumes=(("answer", f"color: {ANSWER}"),),
        ),
        Workload(
            "waiting",  # for the one slot of its runtime, until the task pauses
            {"none": legs(leg("x", agent="capped"), leg("y", agent="capped"), leg("curious")), "curious": COLOR},
            good("x", "y", "curious", "answered"),
            dict.fromkeys("xy", "sleep 2"),
            action="ask",
            resumes=(("answer", f"color: {ANSWER}"),),
        ),
        Workload(
            "vote",
            {"none": legs(*(leg(name, synthesis_rule="vote") for name in "abc")), "b": CHANGES},
            good("a", "b", "c"),
            action="ask",
            task="blocked",
        ),
        Workload(
            "quorum",
            {"none": legs(*(leg(name, synthesis_rule="quorum", quorum=2) for name in "abc")), "b": FAILED},
            good("a", "c", "normal") | {"b": "failed"},
            action="ask",
        ),
        Workload(
            "verify",
            {
                "none": legs(leg("work", "implement"), leg("check", deps=["work"], synthesis_rule="verify")),
                "work": IMPLEMENTED,
                "check": CHANGES,
            },
            good("work", "check", "replan"),
            {"work": WRITES},
        ),
        Workload(
            "nested",
            {"none": legs(leg("top"), leg("b")), "top": legs(leg("deep"), leg("low"))},
            good("top", "b", "deep", "low", "normal"),
            action="ask",
        ),
        Workload(
            "repair",
            {"none": '{"service_result": {"decision": "fine"}}', "none.again": {}},
            good(),
            {"none": f"{WRITES}; {TWICE}"},
            repo=HUB,
        ),
        Workload(
            "too-wide",
            {"none": legs(*(leg(f"leg-{number}") for number in range(17)))},
            good("finalize"),
            action="ask",
        ),
        Workload(
            "spendthrift",
            {"none": legs(*map(leg, "abcd")), "normal": legs(*map(leg, "efgh"))},
            good(*"abcdefgh", "normal", "finalize"),
            action="ask",
        ),
        Workload(
            "killed",
            {"none": legs(leg("slow"), leg("never", deps=["slow"]))},
            good("slow", "finalize") | {"never": "cancelled"},
            {"slow": WAITS},
            action="ask",
            task="cancelled",
            kills="slow",
        ),
        Workload(
            "stopped",
            {"none": legs(leg("slow"), leg("never", deps=["slow"]))},
            good("finalize") | {"slow": "cancelled", "never": "cancelled"},
            {"slow": "sleep 600"},
            action="ask",
            task="cancelled",
            kills="slow",
            at_once=True,
        ),
        Workload(
            "moved",
            {"none": legs(leg("slow"), leg("b"))},
            good("slow", "b", "normal"),
            {"slow": WAITS},
            action="ask",
            loses="slow",
            repo=HUB,
        ),
        Workload("pipeline", {}, {"first": "succeeded", "look": "succeeded", "last": "succeeded"}, pipeline=STAGES),
    )
}


def plan_of(workload: Workload, key: str) -> dict[str, str]:
    """Return the files of a case's plan folder, for its agents."""
    files = {}
    for name, answer in workload.plans.items():
        text = answer
        if not isinstance(text, str):
            result = {"decision": "approved", "summary": f"did {name}"} | dict(text)
            text = json.dumps({"service_result": result})
        files[name] = text.replace("CASE", key)
    return files | {f"{name}.sh": script for name, script in workload.scripts.items()}
