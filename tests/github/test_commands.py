"""Commands in comments: a table of bodies, and the rule that text of ours or of agents never commands."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import cases
from workflows.contract.models import Action
from workflows.github.commands import (
    LONGEST,
    MOST,
    CommentCommand,
    KillCommand,
    ResumeCommand,
    RetryCommand,
    StartCommand,
    StatusCommand,
    UnknownCommand,
    commands_in,
    spoken_in,
)
from workflows.text.inert import inert

JOB = "job-0123456789ab"
RETRY = ResumeCommand("", "retry")
LINE = "/service resume retry"

FORMS: dict[str, tuple[CommentCommand, ...]] = {
    LINE: (RETRY,),
    f"/service resume {JOB} retry": (ResumeCommand(JOB, "retry"),),
    f"/service resume {JOB}.12 retry use the other branch": (
        ResumeCommand(f"{JOB}.12", "retry", "use the other branch"),
    ),
    f"/service resume {JOB} answer\ncolor: red\nsize: L": (ResumeCommand(JOB, "answer", "color: red\nsize: L"),),
    "/service resume answer color: red\nand dark\n\nsize: L": (
        ResumeCommand("", "answer", "color: red\nand dark\n\nsize: L"),
    ),
    "/service resume answer \"color: red\" 'size: L'": (ResumeCommand("", "answer", "color: red\nsize: L"),),
    "/service resume answer --partial color: red": (ResumeCommand("", "answer", "color: red", partial=True),),
    "/service resume answer 'color: rot' --partial --other": (
        ResumeCommand("", "answer", "color: rot", partial=True, other=True),
    ),
    "/service resume answer 'color: it'\"'\"'s red'": (ResumeCommand("", "answer", "color: it's red"),),
    "/service resume answer 'quite red' I think": (ResumeCommand("", "answer", "'quite red' I think"),),
    "/service resume answer 'quite red'": (ResumeCommand("", "answer", "'quite red'"),),
    "/service resume answer 'color: red": (ResumeCommand("", "answer", "'color: red"),),
    "/service resume retry with --partial": (ResumeCommand("", "retry", "with --partial"),),
    "/service resume extend 12h\nthank you": (ResumeCommand("", "extend", "12h"),),
    "/service resume": (ResumeCommand("", ""),),
    f"/service resume {JOB}": (ResumeCommand(JOB, ""),),
    "/service resume Retry": (ResumeCommand("", "Retry"),),
    "/service\tresume  retry\t now ": (ResumeCommand("", "retry", "now"),),
    "/service kill": (KillCommand(),),
    f"/service kill {JOB}": (KillCommand(JOB),),
    "/service kill j\u043eb-1": (),
    "/service retry j\u043eb-1": (),
    f"/service retry {JOB}.2": (RetryCommand(f"{JOB}.2"),),
    "/service retry": (RetryCommand(""),),
    "/service status please": (StatusCommand(),),
    "/service ask scout why is it slow?\n```\ntrace\n```": (
        StartCommand(Action.ASK, "scout", "why is it slow?\n```\ntrace\n```"),
    ),
    "/service review scout": (StartCommand(Action.REVIEW, "scout", ""),),
    "/service implement": (StartCommand(Action.IMPLEMENT, "", ""),),
    "/service resme retry": (UnknownCommand("resme", "resume"),),
    "/service": (UnknownCommand(""),),
    "/service frobnicate": (UnknownCommand("frobnicate"),),
    f"{LINE}\n/service status": (RETRY, StatusCommand()),
    f"{LINE}\nslowly\n\n/service status\nthen": (ResumeCommand("", "retry", "slowly"), StatusCommand()),
}

COUNTS = {
    "in the middle of a paragraph": f"hello\n{LINE}",
    "behind a paragraph": f"hello\n\n{LINE}",
    "with the line ends of GitHub": f"hello\r\n\r\n{LINE}\r\n",
    "behind a list": f"- a\n- b\n\n{LINE}",
    "in the last line of a list": f"- a\n{LINE}",
    "behind a quote and an empty line": f"> {LINE}\n\n{LINE}",
    "behind a closed fence": f"```\n{LINE}\n```\n{LINE}",
    "behind a closed comment": f"<!-- {LINE} -->\n{LINE}",
    "behind closed details": f"<details>\n\n{LINE}\n\n</details>\n\n{LINE}",
    "with a line below it": f"{LINE}\n---",
    "behind a word in angle brackets": f"a List<String> here\n\n{LINE}",
    "behind whole HTML": f'<div class="a>b">x < y</div><br/><!-- c --><img alt=\'"\'>\n\n{LINE}',
    "behind an arrow": f"a --> b <- c\n\n{LINE}",
    "behind a lone backtick": f"it`s\n\n{LINE}",
    "behind a heading": f"# h\n{LINE}",
    "behind a hard break": f"a  \n{LINE}",
}

COUNTS_NOT = {
    "a quote": f"> {LINE}",
    "a quote in a quote": f"> > {LINE}",
    "a lazy line of a quote": f"> they wrote\n{LINE}",
    "a lazy line of a quote in a list": f"- > they wrote\n{LINE}",
    "a fence": f"```\n{LINE}\n```",
    "a long fence": f"`````\n```\n{LINE}\n`````",
    "a fence of tildes": f"~~~ sh\n{LINE}\n~~~",
    "an open fence": f"```\nx\n{LINE}",
    "a fence that other marks do not close": f"```\n~~~\n{LINE}\n```",
    "a fence in a list": f"- ```\n  {LINE}\n  ```",
    "indented code": f"\n    {LINE}",
    "indented by a tab": f"\t{LINE}",
    "an indented line": f" {LINE}",
    "inline code": f"`{LINE}`",
    "inline code over lines": f"`a\n{LINE}\nb`",
    "inline code of two marks": f"``a `\n{LINE}\nb``",
    "a comment": f"<!--\n{LINE}\n-->",
    "a comment with empty lines": f"<!-- a\n\n{LINE}\n\n-->",
    "an open comment": f"<!--\n\n{LINE}",
    "a comment within a paragraph": f"a <!-- b\n{LINE}\n--> c",
    "a comment that a paragraph opens": f"a <!-- b\n\n{LINE}\n\n-->",
    "pre": f"<pre>\n\n{LINE}\n</pre>",
    "code": f"<code>\n\n{LINE}\n\n</code>",
    "details": f"<details><summary>x</summary>\n\n{LINE}\n\n</details>",
    "open details": f"<details>\n\n{LINE}",
    "a quote in HTML": f"<blockquote>\n\n{LINE}\n\n</blockquote>",
    "a block of HTML": f"<div>\n{LINE}\n</div>",
    "an unknown element": f"<x-y>\n{LINE}\n</x-y>",
    "an element that a paragraph opens": f"see <del>this\n{LINE}\n</del>",
    "a tag that a block of HTML leaves open": f'<div><a href="\n\n{LINE}',
    "a quote that a tag leaves open": f'<div title="a>\n\n{LINE}',
    "an element that is opened twice": f"<details><details></details>\n\n{LINE}",
    "text that is struck out": f"~~not\n{LINE}\nany more~~",
    "a link": f"[a\n{LINE}](https://x.example)",
    "the target of a link": '[x]:\n/service "resume"\n',
    "a table": f"{LINE} | x\n--|--\n1 | 2",
    "a heading": f"# {LINE}",
    "a list item": f"- {LINE}",
    "a sentence": f"write {LINE}",
    "bold": f"**{LINE}**",
    "an escape": f"\\{LINE}",
    "an entity": f"&#47;{LINE[1:]}",
    "a fullwidth slash": f"\uff0f{LINE[1:]}",
    "a zero-width space before": f"\u200b{LINE}",
    "a byte order mark before": f"\ufeff{LINE}",
    "a zero-width space in the word": "/ser\u200bvice resume retry",
    "a zero-width space in the verb": "/service resume ret\u200bry",
    "a zero-width space in the text": f"{LINE} a\u200bb",
    "a joiner in the verb": "/service resume ret\u200dry",
    "a no-break space before": f"\xa0{LINE}",
    "a no-break space behind": "/service\xa0resume retry",
    "a no-break space in the verb": "/service resume retry\xa0now",
    "letters of another script": "/servi\u0441e resume retry",
    "a verb of another script": "/service resume \u0433etry",
    "text that turns around": f"{LINE} \u202eyrter",
    "a tag character": f"{LINE}\U000e0041",
    "another line separator": f"a\u2028{LINE}",
    "a vertical tab": f"a\x0b{LINE}",
    "a next line": f"a\x85{LINE}",
    "another word": "/services resume retry",
    "a path": "/service/resume retry",
    "another case": "/Service resume retry",
    "two slashes": f"/{LINE}",
    "nothing": "",
}


@pytest.mark.ruling("L4", "F7")
@pytest.mark.parametrize("body", FORMS)
def test_forms(body: str) -> None:
    assert commands_in(body) == FORMS[body]
    assert commands_in(body.replace("\n", "\r\n")) == FORMS[body]


@pytest.mark.ruling("L4", "F7")
@pytest.mark.parametrize("where", COUNTS)
def test_what_counts(where: str) -> None:
    assert [type(each) for each in commands_in(COUNTS[where])] == [ResumeCommand]


@pytest.mark.ruling("L4", "F7")
@pytest.mark.parametrize("where", COUNTS_NOT)
def test_what_does_not_count(where: str) -> None:
    assert commands_in(COUNTS_NOT[where]) == ()


@pytest.mark.ruling("L6")
def test_a_quote_reply_is_no_command_and_the_own_words_below_it_are() -> None:
    quoted = f"> {LINE}\n> slowly\n\n"
    assert commands_in(quoted + "I do not think so") == ()
    assert commands_in(f"{quoted}/service resume abort") == (ResumeCommand("", "abort"),)


@pytest.mark.ruling("L11")
def test_what_nobody_sees_on_the_page_is_no_part_of_an_answer() -> None:
    body = f"{LINE}\nslowly\n\n<!-- and\n\nquietly -->\nthen stop"
    assert commands_in(body) == (ResumeCommand("", "retry", "slowly\n\nthen stop"),)


def test_joiners_may_stand_in_a_text() -> None:
    family = "\U0001f468\u200d\U0001f469"
    assert commands_in(f"{LINE} {family}") == (ResumeCommand("", "retry", family),)


@pytest.mark.ruling("L4")
def test_a_comment_cannot_command_without_end() -> None:
    assert commands_in("/service status\n" * 2_000) == (StatusCommand(),) * MOST
    assert commands_in("/service status\n" + "x" * LONGEST) == ()
    assert commands_in("/service status\n" * 5 + "`" * 100) == (StatusCommand(),) * 5


@pytest.mark.ruling("L4")
@pytest.mark.parametrize(
    "piece", ["[", "![", "<!--", "<!a", "<a ", "<a '", '<a "', "`a", "*a ", "<details>", "> ", "~~a"]
)
def test_reading_takes_no_time_to_speak_of(piece: str) -> None:
    """It takes a second or two at most, for the longest comment GitHub accepts."""
    for before in ("/service status\n\n", "/service status\n\n<div>"):
        began = time.process_time()
        assert commands_in((before + piece * 66_000)[:65_536]) == (StatusCommand(),)
        assert time.process_time() - began < 10


PIECES = [LINE, "/service", "/SERVICE x", " ", "\n", "\r", "\r\n", "\u2028", "\x85", "\x0b", "\x1e", "\u200b", "\ufeff"]
PIECES += ["\u202e", "> ", "- ", "```", "`", "<!--", "-->", "<pre>", "</pre>", "#", "/", "\uff0f", "\\", "&#47;", "x"]
PIECES += ["\t", "**", "1. ", "~~", "[", "](", "\ue000", "\ue0000\ue000", "\ue0001\ue000", "&", "resume retry"]


@pytest.mark.ruling("L4", "L11", "F7")
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)))
@settings(max_examples=cases(200, 5_000))
def test_inert_text_commands_nothing(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert commands_in(inert(text)) == ()
    assert commands_in(f"hello\n{inert(text)}") == ()


@pytest.mark.ruling("L4", "F7")
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)))
@settings(max_examples=cases(200, 5_000))
def test_a_command_stands_first_on_its_line_and_nothing_in_a_fence_counts(pieces: list[str]) -> None:
    text = "".join(pieces)
    lines = re.split("\r\n?|\n", text)
    assert len(commands_in(text)) <= sum(line.startswith("/service") for line in lines)
    quoted = "\n".join(f"> {line}" for line in lines)
    assert commands_in(quoted) == ()
    fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
    assert commands_in(f"{fence}\n{text}\n{fence}") == ()


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"]), max_size=40))
@settings(max_examples=cases(50, 1_000))
def test_a_command_on_a_comment_of_its_own_always_counts(text: str) -> None:
    """The command counts with any readable text behind it."""
    commands = commands_in(f"/service resume {JOB} retry now {text}")
    assert [type(each) for each in commands] in ([ResumeCommand], [])
    if text.isascii() and not set(text) & set("`*_~[]<>&\\|"):
        assert commands == (ResumeCommand(JOB, "retry", f"now {text}".strip()),)


@pytest.mark.ruling("L6")
def test_one_command_is_read_with_its_line() -> None:
    body = "hello\n/service status  please\nand more\n/service kill"
    assert [(spoken.line, spoken.command) for spoken in spoken_in(body)] == [
        ("/service status  please", StatusCommand()),
        ("/service kill", KillCommand()),
    ]
