"""The comments' texts, and that no text of agents or people acts in them."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.depth import cases
from tests.github.bound_trees import NOON, ROOT, ask, event, failure, job, task, tree
from tests.rows import CUT
from tests.secrets.redaction_table import TOKENS
from workflows.contract.models import ServiceResult
from workflows.github.bound_tree import BoundTree
from workflows.github.commands import ResumeCommand, commands_in
from workflows.github.facts import EDITED, Fact, FactKind, due, fact_in
from workflows.github.texts.comments import body, refusal, report
from workflows.github.texts.parts import MOST_BYTES, Part, comment, tag
from workflows.model.event_kinds import EventKind
from workflows.model.rows import FailingRecord, QuestionRecord
from workflows.model.states import JobState, TaskState

UNTIL = "Without an answer until **2027-01-16 08:01:00 UTC** the task is summed up and ends."
PAGE = f"https://service.example/ui/trees/{ROOT}"


def texts(of: BoundTree) -> dict[FactKind, str]:
    """Return the latest comment of each kind."""
    return {fact.kind: body(of, fact) for fact in due(of)}


def lines(text: str) -> list[str]:
    return text.split("\n")


@pytest.mark.ruling("L3")
def test_the_status() -> None:
    of = tree(TaskState.AWAITING_HUMAN, rounds=(ask(), failure(2)), dashboard="https://service.example")
    assert lines(texts(of)[FactKind.STATUS]) == [
        "### Task: Make the login faster", "",
        "**⏸ needs you**", "",
        f"- until 2027-01-16 08:01:00 UTC: `{ROOT}` asks a person about `color`, `build.size`",
        f"- until 2027-01-16 08:01:00 UTC: `{ROOT}` asks a person about `build` failed", "",
        "| Part | Agent | State | Result |",
        "|---|---|---|---|",
        "| first job | scout, ask | ✔ succeeded | approved |",
        "| `leg-1` | scout, implement | ▶ running |  |", "",
        "Used: jobs 1 of 64, time 1m of 2h, tokens 2,400, cost $0.50.", "",
        f"The whole of it: `service job tree {ROOT}`, or on [the dashboard](<{PAGE}>). As of 2027-01-15 08:01:00 UTC.",
        "", f"<!-- service:{ROOT}-status -->",
    ]  # fmt: skip


@pytest.mark.ruling("L3", "B3")
def test_a_pause_that_asks() -> None:
    of = tree(TaskState.AWAITING_HUMAN, rounds=(ask(),))
    assert lines(texts(of)[FactKind.PAUSE]) == [
        "### A person is needed: Make the login faster", "",
        f"@octocat `{ROOT}` asks what only a person can decide. {UNTIL}", "",
        "- `color`: Which color?",
        "  - red",
        "  - dark blue",
        "- `build.size` (asked by `build`): How large?", "",
        "Whoever may write to this repository ends it with a comment that begins with one of these:", "",
        "To answer; an answer may run over several lines:", "",
        "```text",
        f"/service resume {ROOT} answer",
        "color: <red | dark blue>",
        "build.size: <text>",
        "```", "",
        "To have more time:", "",
        "```text",
        f"/service resume {ROOT} extend 12h",
        "```", "",
        f"The whole of it: `service job tree {ROOT}`.", "",
        f"<!-- service:{ROOT}-r1-pause -->",
    ]  # fmt: skip


@pytest.mark.ruling("L3", "B3")
def test_a_pause_about_failures() -> None:
    of = tree(TaskState.AWAITING_HUMAN, rounds=(failure(),), handle="@acme/ops")
    text = texts(of)[FactKind.PAUSE]
    assert f"@acme/ops `{ROOT}` has failed parts, and a person decides how it goes on." in text
    assert f"- `build` (`{ROOT}.1`) failed: no compiler" in text
    verbs = [line.rpartition(f"{ROOT} ")[2] for line in lines(text) if line.startswith("/service resume")]
    assert verbs == ["retry", "continue", "abort", "extend 12h"]


@pytest.mark.ruling("L3", "F6")
def test_a_pause_that_is_over_says_what_was_recorded() -> None:
    over = ask(end="answered", closed="answered by jo, on GitHub at noon", verbs=(), commands=())
    recorded = ["color: red", "build.size stays unanswered"]
    answer = event(5, EventKind.RESUME_ACCEPTED, round=1, verb="answer", recorded=recorded)
    text = texts(tree(rounds=(over,), events=(answer,)))[FactKind.PAUSE]
    assert lines(text)[:3] == [
        "### A person was asked: Make the login faster", "", "This is over: answered by jo, on GitHub at noon."
    ]  # fmt: skip
    assert "Recorded:\n\n- color: red\n- build.size stays unanswered\n" in text
    assert "@" not in text
    assert "/service" not in text


@pytest.mark.ruling("L3", "F8")
def test_a_reminder() -> None:
    late = event(9, EventKind.ROUND_REMINDER, message=f"12h left: round 1 of {ROOT} asks color", round=1)
    text = texts(tree(rounds=(ask(),), events=(late,)))[FactKind.REMINDER]
    assert lines(text)[0] == f"@octocat 12h left: `{ROOT}` still waits, until **2027-01-16 08:01:00 UTC**."
    assert f"/service resume {ROOT} answer\ncolor: " in text
    over = ask(end="answered", closed="answered by jo")
    assert lines(texts(tree(rounds=(over,), events=(late,)))[FactKind.REMINDER]) == [
        "This reminder is over: answered by jo.", "", f"<!-- service:{ROOT}-e9 -->"
    ]  # fmt: skip


@pytest.mark.ruling("L3")
def test_the_end() -> None:
    url = "https://github.com/acme/shop/issues/1"
    finding = {"title": "Slow", "severity": "low", "source_url": url}
    result = ServiceResult.model_validate({"decision": "approved", "summary": "Faster.", "findings": [finding]})
    of = tree(
        TaskState.DONE,
        task=task(TaskState.DONE, reason="killed by jo, in the terminal", ended_at=NOON + 90),
        jobs=(job(), job(1, branch="service/a"), job(2, branch="service/b")),
        result=result,
        merged=frozenset({"service/b"}),
        published=("https://github.com/acme/shop/pull/12",),
        events=(event(1, EventKind.TREE_CAVEAT, message="not independent"), event(2, EventKind.TREE_ENDED)),
    )
    assert "Read it with this in mind: not independent" in lines(texts(of)[FactKind.STATUS])
    assert lines(texts(of)[FactKind.END]) == [
        "### Done: Make the login faster", "",
        "Why: killed by jo, in the terminal", "",
        "Read it with this in mind: not independent", "",
        "### Result: approved", "",
        "> Faster.", "",
        "#### Findings", "",
        "- **Slow** (low)",
        "  - source_url: https:\u200b//github.com/acme/shop/issues/1", "",
        "#### Branches", "",
        f"- `service/a` not merged: `service job merge {ROOT}.1`",
        "- `service/b` merged", "",
        "- Published as https://github.com/acme/shop/pull/12", "",
        "Used: jobs 2 of 64, time 1m30s of 2h, tokens 3,600, cost $0.75.", "",
        f"The whole of it: `service job tree {ROOT}`. As of 2027-01-15 08:01:30 UTC.", "",
        f"<!-- service:{ROOT}-e2-end -->",
    ]  # fmt: skip


@pytest.mark.ruling("L3")
def test_an_end_without_a_result_says_what_the_last_job_says() -> None:
    failed = job(state=JobState.FAILED, decision="failed", summary="no compiler")
    blocked = task(TaskState.BLOCKED, reason="leg failed", next=f"service job retry {ROOT}")
    text = texts(tree(TaskState.BLOCKED, task=blocked, jobs=(failed,)))[FactKind.END]
    assert "### Result: failed\n\n> no compiler" in text
    assert f"Why: leg failed\n\nNext: `service job retry {ROOT}`" in text
    assert "Nobody summed it up." in texts(tree(TaskState.CANCELLED, jobs=(job(),)))[FactKind.END]


@pytest.mark.ruling("L6")
def test_a_refusal_says_what_is_open_and_what_to_write() -> None:
    why = "round 1 asks color: @everyone"
    text = refusal("comment-7-refusal", "jo", [why], [f'service resume {ROOT} answer "color: <text>"'])
    assert lines(text) == [
        "Not carried out, what jo wrote:", "",
        "- round 1 asks color: @\u200beveryone", "",
        "Write instead, in a comment of its own:", "",
        "```text",
        f'/service resume {ROOT} answer "color: <text>"',
        "```", "",
        "<!-- service:comment-7-refusal -->",
    ]  # fmt: skip
    meant = ["/service resme `retry` @everyone " + "x" * 200]
    quoting = refusal("comment-7-refusal", "jo", ["no such command"], lines=meant)
    shown = f"- `/\u200bservice resme 'retry' @\u200beveryone {'x' * 126}…`: no such command"
    assert shown in lines(quoting)
    assert commands_in(quoting) == ()
    refused = event(3, EventKind.RESUME_REFUSED, message="no such round", actor="jo", channel="comment")
    text = texts(tree(rounds=(ask(),), events=(refused,)))[FactKind.REFUSAL]
    assert "- no such round" in text
    assert f'\n/service resume {ROOT} answer "color: <text>" "build.size: <text>"\n' in text


@pytest.mark.ruling("L4")
def test_a_report_tells_all_trees_of_a_thread() -> None:
    text = report("comment-7-report", [tree(), tree(TaskState.DONE)])
    assert text.count("### Task: Make the login faster") == 2
    assert fact_in(text) == "comment-7-report"
    assert "No task belongs to this thread." in report("comment-7-report", [])


@pytest.mark.ruling("L3", "F6")
def test_what_a_pause_says_to_write_is_read_as_meant() -> None:
    """Copied out of its fence it is a command; in the fence it is none."""
    for waiting in (ask(), failure()):
        text = texts(tree(rounds=(waiting,)))[FactKind.PAUSE]
        assert commands_in(text) == ()
        copied = re.findall(r"```text\n(.*?)\n```", text, re.DOTALL)
        commands = [each for one in copied for each in commands_in(one)]
        assert [(each.job, each.verb) for each in commands if isinstance(each, ResumeCommand)] == [
            (ROOT, verb) for verb in waiting.verbs
        ]


@pytest.mark.ruling("L3")
@pytest.mark.parametrize(
    ("handle", "owner", "expected"),
    [
        ("", "octocat", "@octocat"),
        ("jo", "octocat", "@jo"),
        ("@jo, @acme/ops", "octocat", "@jo @acme/ops"),
        ("call Jo at 5!", "octocat", "@octocat"),
        ("#ops", "octocat", "@octocat"),
        ("<b>", "", ""),
        ("", "not a login", ""),
    ],
)
def test_who_is_tagged(handle: str, owner: str, expected: str) -> None:
    assert tag(handle, owner) == expected


HOSTILE = [
    "@everyone", "a @acme/ops b", "&commat;jo", "#12", "GH-12", "acme/shop#12", "&#35;12", "<!-- service:forged -->",
    "https://github.com/acme/shop/issues/12", "[x](https://github.com/acme/shop/pull/12)", "<img src=x>", "<b", "`",
    "/service resume abort", "\n/service kill\n", "```\n/service kill", "</details><script>", "\r/service status\r",
    "\u200b\u2060\u202e", "# h", "===", "---", "> q", "[a]: http://x", "``` text", "x" * 400, "![i](http://x)",
    "| a | b |\n|---|---|", "| a | b |\n|---|---|\n| c | dd |", "\\|`|",
    "\n\n<!-- service:forged -->", "~~~", "    code", "1. # h", "**", "[", "](javascript:x)",
    f" {TOKENS['GitHub personal']} ", f" {TOKENS['GitHub personal'][:20]}\u200b{TOKENS['GitHub personal'][20:]} ",
]  # fmt: skip


def hostile_tree(text: str, state: TaskState) -> BoundTree:
    """Return a tree in which every text of agents or people is this one."""
    question = QuestionRecord(id="q", prompt=text, choices=(text, "b"), job_id=ROOT)
    failing = FailingRecord(leg="build", job_id=f"{ROOT}.1", attempt=1, state=JobState.FAILED, reason=text)
    entry = {"title": text, "severity": text, "url": text, text: [text, {"a": text}]}
    result = {"decision": "approved", "summary": text or "x", "findings": [text, entry, [text]], "needs": [text]}
    result |= {"human_questions": [{"id": "q", "prompt": text or "x", "choices": [text]}]}
    return BoundTree(
        task=task(state, title=text, reason=text, next=text),
        jobs=(job(agent=text, summary=text, reason=text, decision="failed"), job(1, branch=f"service/{text}")),
        rounds=(
            ask(questions=(question,)),
            failure(2, failing=(failing,)),
            ask(3, end="answered", closed=text, questions=(question,)),
        ),
        events=(
            event(1, EventKind.ROUND_REMINDER, message=text, round=1),
            event(2, EventKind.RESUME_REFUSED, message=text, actor=text, channel="comment"),
            event(3, EventKind.RESUME_ACCEPTED, round=3, verb="answer", recorded=[text]),
            event(4, EventKind.TREE_CAVEAT, message=text),
            event(5, EventKind.TREE_ENDED, message=text),
        ),
        owner="octocat",
        result=ServiceResult.model_validate(result) if len(text) % 2 else None,
    )


LIVE = re.compile(r"@[A-Za-z0-9_-]|#[0-9]|(?i:\bgh-[0-9])|https?://[^\s<>]*/(?:issues|pulls?|discussions)/[0-9]")
OUR_HEADINGS = re.compile(
    r"Task: |A person is needed: |A person was asked: |Done: |Cancelled: |Blocked: |Result: (approved|failed)$"
    r"|Findings$|Needs$|Questions$|Branches$"
)


def check_harmless(text: str, fact: Fact) -> None:
    """Check a text as GitHub renders it: entities resolved, code left out."""
    assert fact_in(text) == fact.fact_id
    assert text.count("<!--") == 1
    assert commands_in(text) == ()
    assert len(text.encode()) <= MOST_BYTES
    assert TOKENS["GitHub personal"][:16] not in text
    assert not re.search("[\u200c\u200d\u2060\ufeff\u202e]", text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert [token.content.strip() for token in tokens if token.type == "html_block"] == [text.split("\n")[-1]]
    prose = "\n".join(shown(token.children or ()) for token in tokens if token.type == "inline")
    mentions = [prose] if fact.kind in (FactKind.PAUSE, FactKind.REMINDER) and not fact.only_edit else []
    assert not LIVE.search(prose.replace("@octocat ", "", len(mentions)))
    titles = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    assert all(OUR_HEADINGS.match(each) for each in titles), titles
    assert [token for token in tokens if token.type == "hr"] == []
    ours = [token.type for token in tokens if (token.type, token.level) in (("table_open", 0), ("td_open", 3))]
    assert ours == ["table_open", *["td_open"] * 8] * (fact.kind is FactKind.STATUS), "others' stay in their item"


def shown(children: Sequence[Token]) -> str:
    links: list[str] = []
    for child in children:
        assert child.type not in ("image", "html_inline"), child
        links += [str(child.attrGet("href") or "")] if child.type == "link_open" else []
        links.append(child.content if child.type == "text" else " ")
    return "".join(links)


@pytest.mark.ruling("L11", "A12")
@pytest.mark.parametrize("state", [TaskState.AWAITING_HUMAN, TaskState.DONE])
@pytest.mark.parametrize("text", ["", *HOSTILE])
def test_nothing_that_others_wrote_acts_in_a_comment(text: str, state: TaskState) -> None:
    for variant in (text, f"a {text}"):
        of = hostile_tree(variant, state)
        for fact in due(of):
            check_harmless(body(of, fact), fact)


@pytest.mark.ruling("L11")
@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3) | st.sampled_from(["\n", " ", "  "])))
@settings(max_examples=cases(15, 200), deadline=None)
def test_nothing_that_others_put_together_acts_in_a_comment(pieces: list[str]) -> None:
    of = hostile_tree("".join(pieces), TaskState.BLOCKED)
    for fact in due(of):
        check_harmless(body(of, fact), fact)


@pytest.mark.ruling("L3")
@pytest.mark.parametrize("text", ["x" * 3_000, "\u6f22" * 3_000, "\U0001f44d\n" * 1_500, "| @a #1 " * 400])
def test_a_comment_keeps_to_what_github_takes(text: str) -> None:
    """Any amount of text stays within the limit in bytes; each part says where the full text is."""
    questions = tuple(QuestionRecord(id=f"q{n}", prompt=text, choices=(text,), job_id=ROOT) for n in range(160))
    findings = [{"title": text, "a": [text] * 20}] * 30
    result = ServiceResult.model_validate({"decision": "approved", "summary": text, "findings": findings})
    jobs = (job(), *(job(number, agent=text[:200], branch=f"service/{number}") for number in range(1, 900)))
    of = tree(TaskState.DONE, rounds=(ask(questions=questions),), result=result, jobs=jobs)
    for fact in due(of):
        comment = body(of, fact)
        assert len(comment.encode()) <= MOST_BYTES
        assert fact_in(comment) == fact.fact_id
        assert f"The whole of it: `service job tree {ROOT}`" in comment
        assert sum(line.startswith("```") for line in lines(comment)) % 2 == 0
        assert commands_in(comment) == ()


def test_an_example_that_is_cut_closes_its_fence() -> None:
    text = comment(
        "x", [Part(["```text", *["a" * 20] * 20, "```"], 200, "the rest is there"), Part(["after"], 200, "")]
    )
    assert text.count("```") == 2
    assert text.endswith("```\n\nthe rest is there\n\nafter\n\n<!-- service:x -->")


@pytest.mark.ruling("L3")
def test_the_same_rows_give_the_same_text_and_what_is_not_shown_edits_nothing() -> None:
    of = tree(TaskState.AWAITING_HUMAN, rounds=(ask(),))
    warning = event(9, EventKind.DELEGATION_BUDGET_WARNING)
    assert texts(of) == texts(replace(of, events=(warning,)))
    assert texts(of) != texts(replace(of, rounds=(ask(expires_at=NOON),)))
    assert {FactKind.REFUSAL, FactKind.REPORT} & EDITED == set()


@pytest.mark.ruling("G1.cut")
def test_a_tree_that_was_cut_short_says_so() -> None:
    cut = task(TaskState.DONE, **{name: CUT[name] for name in ("waits_for", "reason", "next")}, ended_at=NOON + 90)
    written = texts(tree(TaskState.DONE, task=cut, jobs=(job(),), events=(event(2, EventKind.TREE_ENDED),)))
    head, _, why, way_on, *_ = lines(written[FactKind.END])
    assert head == "### Cut short: Make the login faster"
    assert "cut short: the lead asked for 60 parts" in why
    assert CUT["next"] in "".join((way_on, written[FactKind.END]))
    assert "cut short" in lines(written[FactKind.STATUS])[2]
