import html
import json
import re
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.contract.strategies import Body, bodies
from tests.depth import cases
from tests.secrets.redaction_table import TOKENS
from workflows.contract.locate import KEY
from workflows.contract.models import ServiceResult
from workflows.contract.parse import Accepted, read_result
from workflows.contract.render import COMMENT_CAP, FIELD_CAP, render_comment, render_findings


def result_of(**members: Any) -> ServiceResult:
    reading = read_result(json.dumps({KEY: {"decision": "changes_requested", "summary": "s", **members}}))
    assert isinstance(reading, Accepted), reading
    return reading.result


def findings(*entries: Any) -> str:
    """Return the comment's text under the findings heading."""
    return render_comment(result_of(findings=list(entries))).partition("#### Findings\n\n")[2].rstrip("\n")


class TestFindings:
    @pytest.mark.ruling("spec:result.findings")
    def test_a_bold_heading_a_qualifier_a_link_and_a_sub_list(self) -> None:
        entry = {
            "severity": "high",
            "line": 12,
            "title": "Lost update",
            "source_url": "https://example.com/a_(b)",
            "where": {"file": "a.py", "lines": [1, 2]},
            "ok": False,
            "none": None,
        }
        assert findings(entry).split("\n") == [
            "- **Lost update** (high) [source_url](https://example.com/a_%28b%29)",
            "  - line: 12",
            "  - where:",
            "    - file: a.py",
            "    - lines:",
            "      - 1",
            "      - 2",
            "  - ok: false",
            "  - none: null",
        ]

    @pytest.mark.ruling("spec:result.findings")
    @pytest.mark.parametrize(
        ("keys", "used"),
        [
            (("title", "approach", "name", "summary", "finding"), "**{}**"),
            (("recommendation", "severity", "status"), "({})"),
            (("source_url", "url", "source"), "(https://x.example/{})"),
        ],
    )
    def test_the_first_key_present_has_the_role(self, keys: tuple[str, ...], used: str) -> None:
        web = "https://x.example/" if "url" in keys else ""
        for place, key in enumerate(keys):
            entry = {name: f"{web}{name}" for name in reversed(keys[place:])}
            first, *rest = findings(entry).split("\n")
            assert used.format(key) in first
            assert rest == [f"  - {name}: {web}{name}" for name in reversed(keys[place + 1 :])]

    @pytest.mark.ruling("N6")
    @pytest.mark.parametrize(
        ("url", "target"),
        [
            ("https://x.example/a_(b)", "https://x.example/a_%28b%29"),
            ("https://x.example/a|b*c~d", "https://x.example/a%7Cb%2Ac~d"),
            (
                "https://x.example/\N{LATIN SMALL LETTER E WITH ACUTE}?q=50%&r=%41#s",
                "https://x.example/%C3%A9?q=50%25&r=%41#s",
            ),
            ("https://x.example/a&rpar;&#32;b", "https://x.example/a&rpar%3B&#32%3Bb"),
            ("https://x.example/a\u200bb\u202ec", "https://x.example/a%E2%80%8Bb%E2%80%AEc"),
            ("https://x.example/{a}^b$$c$", "https://x.example/%7Ba%7D%5Eb%24%24c%24"),
            ("https://ann@x.example/@everyone", "https://ann%40x.example/%40everyone"),
        ],
    )
    def test_nothing_in_the_address_of_a_link_ends_it(self, url: str, target: str) -> None:
        assert findings({"title": "t", "url": url}) == f"- **t** [url]({target})"

    @pytest.mark.ruling("L11")
    @pytest.mark.parametrize("slash", ["&#47;", "&#x2f;", "&sol;", "%2F", "%2f", "/"])
    def test_no_link_refers_to_an_issue_however_its_address_is_written(self, slash: str) -> None:
        text = findings({"title": "t", "url": f"https://github.com/acme/shop{slash}issues{slash}12"})
        leads = re.findall(r'href="([^"]*)"', MarkdownIt("commonmark").render(text))
        assert not [each for each in leads if "/issues/12" in unquote(html.unescape(each))]

    def test_an_empty_text_is_said_to_be_empty(self) -> None:
        assert findings("", {"": [""]}).split("\n") == ["- (empty)", "- **Finding 2**", "  - :", "    - (empty)"]

    @pytest.mark.ruling("spec:result.findings")
    def test_no_key_is_mandatory(self) -> None:
        assert findings({"a": 1}, {}, {"title": " ", "name": "n"}).split("\n") == [
            "- **Finding 1**",
            "  - a: 1",
            "- **Finding 2**",
            "- **n**",
            "  - title:",
        ]

    @pytest.mark.ruling("spec:result.findings")
    def test_strings_are_plain_text(self) -> None:
        assert findings("one `x`\n\n- two") == "- one `x`\n\n  - two"

    @pytest.mark.ruling("spec:result.findings")
    def test_what_cannot_be_mapped_is_fenced_json(self) -> None:
        assert findings([1, {"a": "```"}]).split("\n") == [
            "- ```json", "  [", "    1,", "    {", '      "a": "```"', "    }", "  ]", "  ```",
        ]  # fmt: skip

    @pytest.mark.ruling("spec:result.findings")
    def test_depth_is_bounded(self) -> None:
        deep: Any = "x"
        for _ in range(40):
            deep = {"k": [deep]}
        text = findings(deep)
        assert max(len(line) - len(line.lstrip()) for line in text.split("\n")) <= 10
        assert '[{"k": [' in text

    @pytest.mark.ruling("spec:result.findings")
    def test_objects_in_arrays_are_key_value_lines(self) -> None:
        assert findings({"all": [{"a": 1, "b": {"c": 2}}, [3], []]}).split("\n")[1:] == [
            "  - all:", "    - a: 1", "      b:", "      - c: 2", "    - list:", "      - 3", "    - []",
        ]  # fmt: skip

    @pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc", "/a", "https://a b", "https://a](b", 5])
    def test_only_the_web_is_linked(self, url: Any) -> None:
        text = findings({"title": "t", "url": url})
        assert "](" not in text.split("\n")[0]
        assert "  - url: " in text


class TestInert:
    @pytest.mark.ruling("spec:result.findings")
    @pytest.mark.parametrize(
        "line",
        ["/service resume job-1 abort", "  /service kill", "> /service x", "- `/SERVICE resume", "** <!-- /service"],
    )
    @pytest.mark.parametrize("before", ["", "text\n", "text\r\n", "text\r", "text\u2028", "text\x0b", "text\x85"])
    def test_our_commands_do_nothing(self, line: str, before: str) -> None:
        comment = render_comment(result_of(summary=before + line, findings=[before + line, {"a": before + line}]))
        assert not any(re.match(r"[^\w/]*/service\b", each, re.IGNORECASE) for each in comment.splitlines())
        assert comment.lower().count("/\u200bservice") == 3
        assert "<!--" not in comment

    @pytest.mark.parametrize("text", ["src/service/app.py", "the /service command", "/services", "a/service"])
    def test_other_words_are_left_alone(self, text: str) -> None:
        assert findings(text) == f"- {text}"

    def test_mentions_html_images_and_odd_links_are_defused(self) -> None:
        text = findings("@everyone a@b.c <!-- x --><img src=x> ![i](https://x) [l](javascript:x) [d]: x\n@org/team")
        assert not re.search(r"@\w|<[\w/!?]|!\[|\]\(javascript|\]:", text)
        assert findings("[l](https://x.example) a < b, x @ y") == "- [l](https://x.example) a < b, x @ y"

    def test_text_that_hides_or_turns_around_is_shown(self) -> None:
        assert findings("a\u202eb\x1bc\u2066d") == "- a\ufffdb\ufffdc\ufffdd"

    @pytest.mark.parametrize(
        "text",
        [
            "### Result: approved",
            "x\n===",
            "x\n---",
            "***",
            "> # h",
            "- # h",
            "```\n# h",
            "<details>",
            "1. ## h",
            "\n\n```",
            "x\n- ",
        ],
    )
    def test_our_frame_cannot_be_forged(self, text: str) -> None:
        comment = render_comment(result_of(summary=text, findings=[text, {"title": text, "a": text}], needs=[text]))
        assert headings(comment) == ["Result: changes requested", "Findings", "Needs"]
        assert not any(token.type in ("hr", "html_block") for token in MarkdownIt("commonmark").parse(comment))


def headings(comment: str) -> list[str]:
    tokens = MarkdownIt("commonmark").parse(comment)
    return [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]


class TestCaps:
    @pytest.mark.ruling("A12", "L11")
    def test_a_secret_that_invisible_characters_split_is_redacted(self) -> None:
        token = TOKENS["npm"]
        split = f"{token[:9]}\u200b{token[9:]}"
        text = render_comment(result_of(summary=split, findings=[split, {"title": split, "a": [split]}]))
        assert token[:12] not in text
        assert text.count("[redacted]") == 4

    @pytest.mark.ruling("A12")
    def test_redaction_comes_before_the_cut(self) -> None:
        token = TOKENS["GitHub personal"]
        for pad in range(FIELD_CAP - 60, FIELD_CAP + 5):
            assert token[:12] not in findings("x" * pad + " " + token)

    def test_a_field_is_cut(self) -> None:
        text = findings("x" * 5_000)
        assert len(text) <= FIELD_CAP + 2
        assert text.endswith("characters cut)")

    @pytest.mark.parametrize("entry", ["@" * 1_900, {"a": {"b": ["x" * 1_900] * 3}}, ["`" * 100] * 15, "\n" * 1_900])
    def test_a_comment_is_cut_between_lines(self, entry: Any) -> None:
        comment = render_comment(result_of(findings=[entry] * 80))
        assert len(comment) <= COMMENT_CAP
        assert comment.endswith("(cut here: the rest does not fit)\n") == (entry != "\n" * 1_900)

    @pytest.mark.ruling("E5")
    @pytest.mark.parametrize("cap", [0, 10, 50, 500, 100_000])
    def test_findings_for_a_prompt_keep_to_the_cap(self, cap: int) -> None:
        text = render_findings(result_of(findings=["@x " * 20, {"title": "t", "token": TOKENS["npm"]}] * 20), cap)
        assert len(text) <= cap
        assert TOKENS["npm"][:12] not in text
        assert ("(cut here" in text) == (cap == 500)

    @pytest.mark.ruling("E5")
    def test_findings_for_a_prompt_are_as_they_were_written(self) -> None:
        assert render_findings(result_of(findings=["@dataclass <T>"]), 100) == "- @dataclass <T>"
        assert render_findings(result_of(), 100) == ""

    @pytest.mark.ruling("P3")
    def test_what_a_result_needs_is_told_with_what_it_found(self) -> None:
        assert render_findings(result_of(needs=["a key", "time"]), 100) == "Needs:\n\n- a key\n- time"
        assert render_findings(result_of(findings=["f"], needs=["a key"]), 100) == "- f\n\nNeeds:\n\n- a key"


def test_the_whole_comment() -> None:
    leg = {"id": "build", "agent": "alice", "action": "implement", "prompt": "secret plan"}
    check = {"id": "check", "ephemeral": {"runtime": "runtime_b"}, "action": "review", "prompt": "p", "deps": ["build"]}
    comment = render_comment(
        result_of(
            summary="Two\n\nlines",
            changes_made=[{"path": "a.py", "summary": "faster"}, "b.py: new"],
            tests_run=[{"command": "make", "exit_code": 0}],
            delegations=[leg, check],
            human_questions=[{"id": "q", "prompt": "which?", "choices": ["a", "b"]}],
        )
    )
    assert comment == "\n".join(
        [
            "### Result: changes requested", "", "> Two", ">", "> lines", "",
            "#### Changes made", "", "- **faster**", "  - path: a.py", "- b.py: new", "",
            "#### Tests run", "", "- **Test 1**", "  - command: make", "  - exit_code: 0", "",
            "#### Delegations", "", "- `build`: implement by alice",
            "- `check`: review by ephemeral worker on runtime_b, after `build`", "",
            "#### Questions", "", "- `q`: which?", "  - a", "  - b", "",
        ]
    )  # fmt: skip


@given(bodies())
@settings(max_examples=cases(20, 150))
def test_any_result_renders_within_its_frame(body: Body) -> None:
    comment = render_comment(result_of(**body))
    ours = ["Findings", "Changes made", "Tests run", "Needs", "Delegations", "Questions"]
    first, *rest = headings(comment)
    assert first.startswith("Result: ")
    assert rest == [title for title in ours if title in rest]
    assert len(comment) <= COMMENT_CAP


MARKDOWN = ("# h", "```", "~~~", "---", "===", "<b>", "- ", "> ", "1. ", "\n", " ", "    ", "x", "\\", "`", "*", "[a]:")


@given(st.lists(st.sampled_from(MARKDOWN)))
@settings(max_examples=cases(30, 300))
def test_no_markdown_reaches_what_follows_it(parts: list[str]) -> None:
    text = "".join(parts)
    entry = {"title": f"x{text}", "a": text}
    comment = render_comment(result_of(summary=f"x{text}", findings=[text, entry], needs=["n"]))
    assert headings(comment) == ["Result: changes requested", "Findings", "Needs"]
