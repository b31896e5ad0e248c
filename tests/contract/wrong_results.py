"""Results as models get them wrong, a row each: the output, and the lines that its author is asked to mend.

Without lines the output is taken as it is. `again` is the notice of an output that is taken all the same when it comes
again, after the repair; without it the job fails.
"""

import base64
import json
from dataclasses import dataclass
from urllib.parse import quote

from workflows.contract.locate import KEY


@dataclass(frozen=True)
class Wrong:
    """An output, and what becomes of it."""

    output: str
    lines: tuple[str, ...] = ()
    """The beginnings of its faults, all of them; what follows quotes the output."""
    legs: int = 0
    """Of an output that is taken: its delegations."""
    notice: str = ""
    """Of an output that is taken: the notice."""
    again: str = ""


def wrong(output: str, *lines: str, legs: int = 0, notice: str = "", again: str = "") -> Wrong:
    return Wrong(output, lines, legs, notice, again)


GOOD: dict[str, object] = {"decision": "approved", "summary": "ok"}
LEG: dict[str, object] = {"id": "a", "agent": "alice", "action": "ask", "prompt": "p"}
QUESTION = {"id": "q", "prompt": "Which?"}


def whole(**members: object) -> str:
    return json.dumps({KEY: {**GOOD, **members}})


def legs(*entries: dict[str, object], **members: object) -> str:
    return whole(delegations=entries, **members)


def leg(**members: object) -> dict[str, object]:
    return {**LEG, **members}


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in LEG.items() if key != name}


W = whole()
PRETTY = json.dumps({KEY: GOOD}, indent=2)
DRAFT = "a valid result stands before another one, which has faults; the last one counts, so send one object"
LATER = "one result is valid; 1 later candidate is not valid and ignored"
DECISION = "decision must be one of approved, changes_requested, blocked, implemented, failed, skipped, not "
NONE = "the output holds no JSON object with the key service_result"
OCCURS = f"{NONE}; the text service_result occurs, but not as the key of a JSON object: near "
UNDER = ', not in an object with the key service_result: send {"service_result": {...}}'
DIRECTLY = ": put what is in it directly into service_result"
INVALID = "the result is not valid JSON: "
TRUNCATED = "the result is truncated: the output ends after "
OUTSIDE = " the result, outside of it: put them into the result"
DROPPED = "dropped after the repair: "
ARRAY = " must be an array of strings or objects, not "
A, B, Q = 'delegations[0] (id "a"): ', 'delegations[1] (id "b"): ', 'human_questions[0] (id "q"): '
UNNAMED, ASKS = 'delegations[0] (id "<missing>"): ', 'human_questions[0] (id "<missing>"): '

WRONG: dict[str, Wrong] = {
    # what is around it
    "in a fence": wrong(f"```json\n{PRETTY}\n```"),
    "in prose": wrong(f"Done, see below.\n\n{W}\n\nThat is all."),
    "in bold": wrong(f"**{W}**"),
    "in backticks": wrong(f"`{W}`"),
    "in a quote of markdown": wrong("\n".join("> " + line for line in PRETTY.splitlines()), OCCURS),
    "in a numbered listing": wrong(
        "\n".join(f"{n:4}\t{line}" for n, line in enumerate(PRETTY.splitlines(), 1)), OCCURS
    ),
    "in a diff": wrong("\n".join("+" + line for line in PRETTY.splitlines()), OCCURS),
    "in a tag": wrong(f"<result>{W}</result>"),
    "behind a byte order mark": wrong("\ufeff" + W),
    "with Windows line ends": wrong(PRETTY.replace("\n", "\r\n")),
    "in an array": wrong(f"[{W}]"),
    "in an envelope": wrong(json.dumps({"type": "result", "content": json.loads(W)})),
    "assigned": wrong(f"service_result = {json.dumps(GOOD)}", f"the result stands under no key{UNDER}"),
    "called": wrong(f"service_result({json.dumps(GOOD)})", f"the result stands under no key{UNDER}"),
    "as a member without its object": wrong(
        f'"service_result": {json.dumps(GOOD)}', f'the result stands under "service_result"{UNDER}'
    ),
    "without the key": wrong(json.dumps(GOOD), f"the result stands under no key{UNDER}"),
    "without the key, in a fence": wrong(
        f"```json\n{json.dumps(GOOD, indent=2)}\n```", f"the result stands under no key{UNDER}"
    ),
    "key in camel case": wrong(json.dumps({"serviceResult": GOOD}), f'the result stands under "serviceResult"{UNDER}'),
    "key with a hyphen": wrong(
        json.dumps({"service-result": GOOD}), f'the result stands under "service-result"{UNDER}'
    ),
    "key in capitals": wrong(json.dumps({"SERVICE_RESULT": GOOD}), f'the result stands under "SERVICE_RESULT"{UNDER}'),
    "key in the plural": wrong(
        json.dumps({"service_results": [GOOD]}), f'the result stands under "service_results"{UNDER}'
    ),
    "key result": wrong(json.dumps({"result": GOOD}), f'the result stands under "result"{UNDER}'),
    "two fences, the same": wrong(
        f"```json\n{W}\n```\nAgain:\n```json\n{W}\n```", notice="the output holds 2 valid results; the last one counts"
    ),
    "two fences, the last counts": wrong(
        f"```json\n{whole(summary='draft')}\n```\nFinal:\n```json\n{W}\n```",
        notice="the output holds 2 valid results; the last one counts",
    ),
    "a draft, then a faulty one": wrong(
        whole(summary="draft") + "\n" + whole(decision="done"),
        DRAFT,
        f'{DECISION}"done"; did you mean "implemented"?',
        again=LATER,
    ),
    "a draft, then a cut one": wrong(
        whole(summary="draft") + "\n" + W[:-10],
        DRAFT,
        f"{TRUNCATED}51 bytes of it, inside decision; send the whole object",
        again=LATER,
    ),
    "a draft, then one in single quotes": wrong(
        whole(summary="draft") + "\n" + str({KEY: GOOD}),
        DRAFT,
        f'{INVALID}single quotes, where JSON has double ones ("), at line 1',
        again=LATER,
    ),
    "a draft, then one without its key": wrong(
        whole(summary="draft") + "\n" + json.dumps(GOOD), DRAFT, f"the result stands under no key{UNDER}", again=LATER
    ),
    "delegations after it": wrong(
        W + "\n" + json.dumps({"delegations": [LEG]}),
        f"delegations stand after{OUTSIDE}",
        again=f"{DROPPED}delegations stand after{OUTSIDE}",
    ),
    "delegations before it": wrong(
        json.dumps({"delegations": [LEG]}) + "\n" + W,
        f"delegations stand before{OUTSIDE}",
        again=f"{DROPPED}delegations stand before{OUTSIDE}",
    ),
    "a list of delegations after it": wrong(
        W + "\n\nDelegations:\n" + json.dumps([LEG]),
        f"delegations stand after{OUTSIDE}",
        again=f"{DROPPED}delegations stand after{OUTSIDE}",
    ),
    "delegations in yaml after it": wrong(
        W + "\n\ndelegations:\n- id: a\n  agent: alice\n  action: ask\n  prompt: p\n",
        f"delegations stand after{OUTSIDE}",
        again=f"{DROPPED}delegations stand after{OUTSIDE}",
    ),
    "delegations beside the key": wrong(
        json.dumps({KEY: GOOD, "delegations": [LEG]}),
        'unknown key "delegations" beside service_result: put it inside',
        again=f'{DROPPED}unknown key "delegations" beside service_result: put it inside',
    ),
    "questions beside the key": wrong(
        json.dumps({KEY: GOOD, "human_questions": [QUESTION]}),
        'unknown key "human_questions" beside service_result: put it inside',
        again=f'{DROPPED}unknown key "human_questions" beside service_result: put it inside',
    ),
    "decision beside the key": wrong(
        json.dumps({KEY: {"summary": "ok"}, "decision": "approved"}),
        "decision is required",
        'unknown key "decision" beside service_result: put it inside',
    ),
    "questions after it": wrong(
        W + "\n" + json.dumps({"human_questions": [QUESTION]}),
        f"human_questions stand after{OUTSIDE}",
        again=f"{DROPPED}human_questions stand after{OUTSIDE}",
    ),
    # wrappers
    "in the key twice": wrong(json.dumps({KEY: {KEY: GOOD}})),
    "in arguments, inside": wrong(
        json.dumps({KEY: {"arguments": GOOD}}), f'the result is wrapped in "arguments"{DIRECTLY}'
    ),
    "in arguments, as a text": wrong(
        json.dumps({"name": "final", "arguments": W}),
        "the result is a text with escaped quotes, in arguments: send the JSON object itself",
    ),
    "as the call of a tool": wrong(
        json.dumps({"name": KEY, "arguments": GOOD}), f'the result stands under "arguments"{UNDER}'
    ),
    "as the call of a tool, input": wrong(
        json.dumps({"type": "tool_use", "name": KEY, "input": GOOD}), f'the result stands under "input"{UNDER}'
    ),
    "in result, inside": wrong(json.dumps({KEY: {"result": GOOD}}), f'the result is wrapped in "result"{DIRECTLY}'),
    "in data, inside": wrong(json.dumps({KEY: {"data": GOOD}}), f'the result is wrapped in "data"{DIRECTLY}'),
    "as a text, inside": wrong(json.dumps({KEY: json.dumps(GOOD)}), "service_result must be an object, not a string"),
    "as a whole text": wrong(json.dumps(W), "the result is a text with escaped quotes: send the JSON object itself"),
    "as an array, inside": wrong(json.dumps({KEY: [GOOD]}), "service_result must be an object, not an array"),
    "a decision alone, inside": wrong(json.dumps({KEY: "approved"}), "service_result must be an object, not a string"),
    "null, inside": wrong(json.dumps({KEY: None}), "service_result must be an object, not null"),
    "empty, inside": wrong(json.dumps({KEY: {}}), "decision is required", "summary is required"),
    "the schema in place of a result": wrong(
        json.dumps({KEY: {"type": "object", "properties": {"decision": {"type": "string"}}}}),
        "decision is required",
        "summary is required",
        'unknown key "type"',
        'unknown key "properties"',
    ),
    # other notations
    "single quotes": wrong(str({KEY: GOOD}), f'{INVALID}single quotes, where JSON has double ones ("), at line 1'),
    "python's words": wrong(
        '{"service_result": {"decision": "approved", "summary": "ok", "needs": None}}',
        f"{INVALID}a word that JSON has not (it has null, true and false) at line 1",
    ),
    "python's words, in a text": wrong(
        "{'service_result': {'decision': 'approved', 'summary': \"it's ok\", 'needs': None}}",
        f'{INVALID}single quotes, where JSON has double ones ("), at line 1',
    ),
    "keys without quotes": wrong(
        '{service_result: {decision: "approved", summary: "ok"}}', f"{INVALID}a key without double quotes at line 1"
    ),
    "inner keys without quotes": wrong(
        '{"service_result": {decision: "approved", summary: "ok"}}', f"{INVALID}a key without double quotes at line 1"
    ),
    "typographic quotes": wrong(
        W.replace('"', "\u201d"), f'{INVALID}typographic quotes, where JSON has straight ones ("), at line 1'
    ),
    "typographic quotes around a value": wrong(
        W.replace('"ok"', "\u201cok\u201d"), f'{INVALID}typographic quotes, where JSON has straight ones ("), at line 1'
    ),
    "escaped quotes": wrong(
        W.replace('"', '\\"'), "the result is a text with escaped quotes: send the JSON object itself"
    ),
    "html entities": wrong(W.replace('"', "&quot;"), OCCURS),
    "backticks for quotes": wrong(W.replace('"', "`"), OCCURS),
    "a comment": wrong(
        PRETTY.replace('"ok"', '"ok" // fine'), f"{INVALID}a comment, which JSON has none of, at line 4"
    ),
    "a block comment": wrong(
        PRETTY.replace('"ok"', '/* fine */ "ok"'), f"{INVALID}a comment, which JSON has none of, at line 4"
    ),
    "a comment with a hash": wrong(
        PRETTY.replace('"ok"', '"ok" # fine'), f"{INVALID}a comment, which JSON has none of, at line 4"
    ),
    "a comma too many": wrong(PRETTY.replace('"ok"', '"ok",'), f"{INVALID}a comma before }} at line 5"),
    "a comma too many in a list": wrong(W.replace("}}", ', "needs": ["x",]}}'), f"{INVALID}a comma before ] at line 1"),
    "a comma too few": wrong(PRETTY.replace('",', '"'), f"{INVALID}expecting ',' delimiter at line 4"),
    "a colon too few": wrong(W.replace('"summary":', '"summary"'), f"{INVALID}expecting ':' delimiter at line 1"),
    "equals for colon": wrong(W.replace('"summary":', '"summary" ='), f"{INVALID}expecting ':' delimiter at line 1"),
    "a quote too few": wrong(W.replace('"ok"', '"ok'), f"{TRUNCATED}60 bytes of it; send the whole object"),
    "quotes in a text": wrong(
        W.replace("ok", 'an "ok" one'), f'{INVALID}a quote inside a string (write \\"), or a comma too few, at line 1'
    ),
    "a line break in a text": wrong(
        W.replace("ok", "o\nk"),
        f"{INVALID}a line break or another control character in a string (write \\n or \\t) at line 1",
    ),
    "a tab in a text": wrong(
        W.replace("ok", "o\tk"),
        f"{INVALID}a line break or another control character in a string (write \\n or \\t) at line 1",
    ),
    "a backslash that escapes nothing": wrong(
        W.replace("ok", "C:\\work"), f"{INVALID}a backslash that begins no escape (write \\\\) at line 1"
    ),
    "an escaped apostrophe": wrong(
        W.replace("ok", "it\\'s ok"), f"{INVALID}a backslash that begins no escape (write \\\\) at line 1"
    ),
    "a brace too few": wrong(W[:-1], f"{TRUNCATED}60 bytes of it; send the whole object"),
    "a brace too many": wrong(W + "}"),
    "a bracket too few": wrong(
        '{"service_result": {"decision": "approved", "summary": "ok", "needs": ["x"}}',
        f"{INVALID}a bracket that is still open before }} at line 1",
    ),
    "cut in a text": wrong(W[:-6], f"{TRUNCATED}55 bytes of it, inside summary; send the whole object"),
    "cut in a key": wrong(
        W[: W.index("summary") + 3], f"{TRUNCATED}48 bytes of it, inside decision; send the whole object"
    ),
    "cut after the key": wrong(W[:20], f"{TRUNCATED}20 bytes of it; send the whole object"),
    "cut in a fence": wrong(f"```json\n{W[:-1]}\n```", f"{INVALID}a bracket that is still open before ` at line 2"),
    "an ellipsis in a list": wrong(
        W.replace("}}", ', "findings": ["x", ...]}}'),
        f"{INVALID}an ellipsis, where all has to be written out, at line 1",
    ),
    "an ellipsis in an object": wrong(
        '{"service_result": {"decision": "approved", ...}}',
        f"{INVALID}an ellipsis, where all has to be written out, at line 1",
    ),
    "NaN": wrong(
        W.replace("}}", ', "artifact_body": NaN}}'), "artifact_body is not a finite number of reasonable size"
    ),
    "an infinite number": wrong(
        W.replace("}}", ', "artifact_body": 1e999}}'), "artifact_body is not a finite number of reasonable size"
    ),
    "a plus before a number": wrong(W.replace("}}", ', "artifact_body": +1}}'), f"{INVALID}expecting value at line 1"),
    "undefined": wrong(
        W.replace("}}", ', "needs": undefined}}'),
        f"{INVALID}a word that JSON has not (it has null, true and false) at line 1",
    ),
    "a text in two parts": wrong(W.replace('"ok"', '"o" + "k"'), f"{INVALID}expecting ',' delimiter at line 1"),
    "a text in three quotes": wrong(W.replace('"ok"', '"""ok"""'), f"{INVALID}expecting ',' delimiter at line 1"),
    "yaml": wrong("service_result:\n  decision: approved\n  summary: ok\n", OCCURS),
    "yaml, in a fence": wrong("```yaml\nservice_result:\n  decision: approved\n  summary: ok\n```", OCCURS),
    "toml": wrong('[service_result]\ndecision = "approved"\nsummary = "ok"\n', OCCURS),
    "xml": wrong("<service_result><decision>approved</decision><summary>ok</summary></service_result>", OCCURS),
    "a table of markdown": wrong("| decision | summary |\n|---|---|\n| approved | ok |", NONE),
    "lines of markdown": wrong("**Decision:** approved\n**Summary:** ok\n", NONE),
    "base64": wrong(base64.b64encode(W.encode()).decode(), NONE),
    "escaped for an address": wrong(quote(W), OCCURS),
    "in UTF-16": wrong(W.encode("utf-16-le").decode("latin-1"), NONE),
    "full-width braces": wrong(W.replace("{", "\uff5b").replace("}", "\uff5d"), OCCURS),
    # nothing
    "nothing": wrong("", "the output is empty; end with one JSON object that has the key service_result"),
    "blanks": wrong(" \n\n", "the output is empty; end with one JSON object that has the key service_result"),
    "a fence with nothing in it": wrong("```json\n```", NONE),
    "an empty object": wrong("{}", NONE),
    "prose alone": wrong("I have looked at it, and all is well.", NONE),
    "a refusal": wrong("I'm sorry, but I can't help with that.", NONE),
    "a promise": wrong("I will now write the service_result.", OCCURS),
    "the shape alone": wrong('{"service_result": {...}}', OCCURS),
    "the example": wrong(
        '{"service_result": {"decision": "<decision>", "summary": "<what you did and found>"}}',
        f'{DECISION}"<decision>"',
        'summary "<what you did and found>" is a placeholder of the example: put your own text in its place',
    ),
    # members
    "decision done": wrong(whole(decision="done"), f'{DECISION}"done"; did you mean "implemented"?'),
    "decision completed": wrong(whole(decision="completed"), f'{DECISION}"completed"; did you mean "implemented"?'),
    "decision request_changes": wrong(
        whole(decision="request_changes"), f'{DECISION}"request_changes"; did you mean "changes_requested"?'
    ),
    "decision Approved": wrong(whole(decision="Approved"), f'{DECISION}"Approved"; did you mean "approved"?'),
    "decision with a full stop": wrong(whole(decision="approved."), f'{DECISION}"approved."; did you mean "approved"?'),
    "two decisions": wrong(whole(decision="approved|implemented"), f'{DECISION}"approved|implemented"; choose one'),
    "decision partial": wrong(whole(decision="partial"), f'{DECISION}"partial"'),
    "decision true": wrong(whole(decision=True), "decision must be a string, not a boolean"),
    "decision null": wrong(whole(decision=None), "decision is required"),
    "decision list": wrong(whole(decision=["approved"]), "decision must be a string, not an array"),
    "no decision": wrong(json.dumps({KEY: {"summary": "ok"}}), "decision is required"),
    "no summary": wrong(json.dumps({KEY: {"decision": "approved"}}), "summary is required"),
    "a blank summary": wrong(whole(summary=" "), "summary is required"),
    "summary list": wrong(whole(summary=["ok"]), "summary must be a string, not an array"),
    "summary twice": wrong(W.replace("}}", ', "summary": "no"}}'), "summary is given more than once"),
    "misspelt keys": wrong(
        json.dumps({KEY: {"desicion": "approved", "sumary": "ok"}}),
        "decision is required",
        "summary is required",
        'unknown key "desicion"; did you mean "decision"?',
        'unknown key "sumary"; did you mean "summary"?',
    ),
    "misspelt rare key": wrong(
        whole(delagations=[LEG]),
        'unknown key "delagations"; did you mean "delegations"?',
        again=f"{DROPPED}delagations",
    ),
    "keys in capitals": wrong(
        json.dumps({KEY: {"Decision": "approved", "Summary": "ok"}}),
        "decision is required",
        "summary is required",
        'unknown key "Decision"; did you mean "decision"?',
        'unknown key "Summary"; did you mean "summary"?',
    ),
    "another word for a key": wrong(
        whole(files_changed=["a.py"], tests=["make"]),
        'unknown key "files_changed"; did you mean "changes_made"?',
        'unknown key "tests"; did you mean "tests_run"?',
        again=f"{DROPPED}files_changed, tests",
    ),
    "an unknown key": wrong(whole(confidence=0.9), 'unknown key "confidence"', again=f"{DROPPED}confidence"),
    "status for decision": wrong(
        json.dumps({KEY: {"status": "approved", "summary": "ok"}}),
        "decision is required",
        'unknown key "status"; did you mean "decision"?',
    ),
    "message for summary": wrong(
        json.dumps({KEY: {"decision": "approved", "message": "ok"}}),
        "summary is required",
        'unknown key "message"; did you mean "summary"?',
    ),
    "next_agents": wrong(
        whole(next_agents=["alice"]),
        "next_agents was replaced by delegations: list the follow-up jobs there",
        again=f"{DROPPED}next_agents",
    ),
    "findings text": wrong(whole(findings="all well"), f"findings{ARRAY}a string"),
    "findings numbers": wrong(whole(findings=[1]), "findings[0] must be a string or an object, not a number"),
    "changes_made text": wrong(whole(changes_made="a.py: x"), f"changes_made{ARRAY}a string"),
    "changes_made by file": wrong(whole(changes_made={"a.py": "x"}), f"changes_made{ARRAY}an object"),
    "tests_run true": wrong(whole(tests_run=True), f"tests_run{ARRAY}a boolean"),
    "tests_run nothing said": wrong(
        whole(tests_run=[{"exit_code": 0}]),
        "tests_run[0] must have at least one string value, such as path or command or summary",
    ),
    "needs text": wrong(whole(needs="none"), f"needs{ARRAY}a string"),
    "needs blank": wrong(whole(needs=[""]), "needs[0] must not be blank"),
    "all members null": wrong(
        whole(findings=None, changes_made=None, delegations=None, human_questions=None, artifact_body=None)
    ),
    "a NUL in a text": wrong(whole(summary="o\0k"), "summary contains a NUL character"),
    "half a character": wrong(
        W.replace("ok", "\\ud83d"), "summary contains a lone surrogate or a byte that is not UTF-8"
    ),
    "nested too deeply": wrong(whole(artifact_body=json.loads("[" * 101 + "]" * 101)), "artifact_body"),
    # delegations
    "delegations as a text": wrong(
        whole(delegations=json.dumps([LEG])), "delegations must be an array of objects, not a string"
    ),
    "delegations as an object": wrong(whole(delegations=LEG), "delegations must be an array of objects, not an object"),
    "delegations by id": wrong(
        whole(delegations={"a": without("id")}), "delegations must be an array of objects, not an object"
    ),
    "delegations as names": wrong(whole(delegations=["alice"]), f"{UNNAMED}must be an object, not a string"),
    "delegations in delegations": wrong(
        whole(delegations={"delegations": [LEG]}), "delegations must be an array of objects, not an object"
    ),
    "an id missing": wrong(legs(without("id")), f"{UNNAMED}id is required"),
    "an id twice": wrong(legs(LEG, leg(prompt="q")), 'delegations[1] (id "a"): id is already used by delegations[0]'),
    "an id with blanks": wrong(
        legs(leg(id="build it")),
        'delegations[0] (id "build it"): id must be 1 to 64 letters, digits, ".", "_" or "-"',
    ),
    "an id that is a number": wrong(legs(leg(id=1)), f"{UNNAMED}id must be a string, not a number"),
    "an agent missing": wrong(legs(without("agent")), f"{A}agent or ephemeral is required"),
    "agent and ephemeral": wrong(
        legs(leg(ephemeral={"runtime": "runtime_a"})), f"{A}agent and ephemeral are both set; set exactly one of them"
    ),
    "an agent as an object": wrong(legs(leg(agent={"name": "alice"})), f"{A}agent must be a string, not an object"),
    "an action missing": wrong(legs(without("action")), f"{A}action is required"),
    "an unknown action": wrong(
        legs(leg(action="code")), f'{A}action must be one of ask, review, implement, not "code"'
    ),
    "a prompt missing": wrong(legs(without("prompt")), f"{A}prompt is required"),
    "a prompt in lines": wrong(legs(leg(prompt=["do", "it"])), f"{A}prompt must be a string, not an array"),
    "a prompt too long": wrong(
        legs(leg(prompt="x" * 1_048_577)), f"{A}prompt must be at most 1,048,576 characters, not 1,048,577"
    ),
    "a task for the prompt": wrong(
        legs({**without("prompt"), "task": "p"}),
        f"{A}prompt is required",
        f'{A}unknown key "task"; did you mean "prompt"?',
    ),
    "depends_on": wrong(
        legs(LEG, leg(id="b", depends_on=["a"])),
        f'{B}unknown key "depends_on"; did you mean "deps"?',
        again=f"{DROPPED}delegations[1].depends_on",
    ),
    "deps as a text": wrong(legs(LEG, leg(id="b", deps="a")), f"{B}deps must be an array of strings, not a string"),
    "deps on an unknown id": wrong(
        legs(leg(id="build"), leg(id="check", deps=["biuld"])),
        'delegations[1] (id "check"): deps names "biuld", which is not a delegation of this result; did you mean',
    ),
    "deps on an agent": wrong(
        legs(LEG, leg(id="b", deps=["alice"])), f'{B}deps names "alice", which is not a delegation of this result'
    ),
    "deps on itself": wrong(legs(leg(deps=["a"])), f'{A}deps must not name the delegation itself: "a"'),
    "deps in a circle": wrong(
        legs(leg(deps=["b"]), leg(id="b", deps=["a"])), "delegations have a cycle in deps: a -> b -> a"
    ),
    "deps by number": wrong(legs(LEG, leg(id="b", deps=[0])), f"{B}deps[0] must be a string that is not blank"),
    "timeout in minutes": wrong(
        legs(leg(timeout=30)), f'{A}timeout must be a string with a unit, such as "30s" or "30m"'
    ),
    "timeout in words": wrong(
        legs(leg(timeout="5 minutes")),
        f'{A}timeout must be a duration such as "90s", "30m" or "1h30m" (units d, h, m, s, ms, largest first)',
    ),
    "timeout of nothing": wrong(legs(leg(timeout="0s")), f"{A}timeout must be positive"),
    "retry as a text": wrong(legs(leg(retry="2")), f'{A}retry must be an integer, not "2"'),
    "retry below nothing": wrong(legs(leg(retry=-1)), f"{A}retry must be 0 or more"),
    "an unknown policy": wrong(
        legs(leg(failure_policy="stop")),
        f'{A}failure_policy must be one of block_parent, continue, escalate, escalate_human, not "stop"',
    ),
    "an unknown rule": wrong(
        legs(leg(synthesis_rule="majority")),
        f'{A}synthesis_rule must be one of summary, vote, quorum, verify, not "majority"',
    ),
    "a quorum of percent": wrong(
        legs(leg(synthesis_rule="quorum", quorum="50%")), f'{A}quorum must be an integer, not "50%"'
    ),
    "a quorum too large": wrong(
        legs(leg(synthesis_rule="quorum", quorum=2)),
        f"{A}quorum must not exceed the number of delegations that run (1)",
    ),
    "a quorum without its rule": wrong(legs(leg(quorum=1)), f"{A}quorum is only allowed when synthesis_rule is quorum"),
    "a rule without its quorum": wrong(legs(leg(synthesis_rule="quorum")), f"{A}quorum is required"),
    "a worktree outside": wrong(
        legs(leg(worktree="/tmp/x")),
        f'{A}worktree must be a relative name such as "shared" or "team/api"',
    ),
    "artifacts without a body": wrong(
        legs(leg(artifacts=["plan.md"])), "artifact_body is required, because delegations[0] set artifacts"
    ),
    "an ephemeral by name": wrong(
        legs({**without("agent"), "ephemeral": "codex"}), f"{A}ephemeral must be an object, not a string"
    ),
    "an ephemeral of claude": wrong(
        legs({**without("agent"), "ephemeral": {"runtime": "claude"}}),
        f'{A}ephemeral.runtime must be one of runtime_a, runtime_b, runtime_c, not "claude"; did you mean "runtime_b"?',
    ),
    "an ephemeral without runtime": wrong(
        legs({**without("agent"), "ephemeral": {"role": "checker"}}), f"{A}ephemeral.runtime is required"
    ),
    "a shell ephemeral": wrong(
        legs({**without("agent"), "ephemeral": {"runtime": "shell"}}),
        f'{A}ephemeral.runtime must be one of runtime_a, runtime_b, runtime_c, not "shell"',
    ),
    "an implementer that may not write": wrong(
        legs({**without("agent"), "action": "implement", "ephemeral": {"runtime": "runtime_a"}}),
        f"{A}ephemeral.autonomy_policy must be workspace-write or danger-full-access for a worker",
    ),
    "a prompt in the ephemeral": wrong(
        legs({**without("agent"), "ephemeral": {"runtime": "runtime_a", "prompt": "p"}}),
        f'{A}ephemeral has the unknown key "prompt"; put it into the object around it',
        again=f"{DROPPED}delegations[0].ephemeral.prompt",
    ),
    "an action in the ephemeral": wrong(
        legs({"id": "a", "prompt": "p", "ephemeral": {"runtime": "runtime_a", "action": "ask"}}),
        f'{A}ephemeral has the unknown key "action"; put it into the object around it',
        f"{A}action is required",
    ),
    "a program as the agent": wrong(legs(leg(agent="codex")), legs=1),
    "a merge of no leg": wrong(legs(leg(action="implement", worktree="@merge:x")), legs=1),
    "skipped with delegations": wrong(
        legs(LEG, decision="skipped"), "delegations must be empty when decision is skipped"
    ),
    "blocked with delegations": wrong(legs(LEG, decision="blocked"), legs=1),
    "more than 256": wrong(legs(*(leg(id=f"l{n}") for n in range(257)))),
    # questions
    "questions as texts": wrong(whole(human_questions=["Which?"]), f"{ASKS}must be an object, not a string"),
    "a question without id": wrong(whole(human_questions=[{"prompt": "Which?"}]), f"{ASKS}id is required"),
    "a question as question": wrong(
        whole(human_questions=[{"id": "q", "question": "Which?"}]),
        f"{Q}prompt is required",
        f'{Q}unknown key "question"; did you mean "prompt"?',
    ),
    "two questions of one id": wrong(
        whole(human_questions=[QUESTION] * 2), 'human_questions[1] (id "q"): id is already used by human_questions[0]'
    ),
    "choices as a text": wrong(
        whole(human_questions=[{"id": "q", "prompt": "Which?", "choices": "a or b"}]),
        f"{Q}choices must be an array of strings, not a string",
    ),
    "eleven questions": wrong(
        whole(human_questions=[{"id": f"q{n}", "prompt": "Which?"} for n in range(11)]),
        "human_questions must have at most 10 entries, not 11",
    ),
    "a question as an object": wrong(
        whole(human_questions=QUESTION), "human_questions must be an array of objects, not an object"
    ),
}
