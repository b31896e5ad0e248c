"""Comments that may command, people who may command, and the rate limit of refusals."""

from dataclasses import replace

import pytest

from workflows.contract.models import Action
from workflows.github.commands import ALLOWED, COMMANDS, Kill, Resume, Retry, Said, Start, Status, Unknown, spoken_in
from workflows.github.comment import Comment, why_ignored
from workflows.github.comment_permission import refusal, silent
from workflows.github.facts import holds_mark, marked, marker

COMMENT = Comment(
    id=7,
    author="octocat",
    author_type="User",
    author_id=1,
    body="/service status",
    created_at=100.0,
    updated_at=100.0,
    number=12,
    url="https://github.com/acme/shop/issues/12#issuecomment-7",
)
OURS = ("Service-Account",)


class TestWhyIgnored:
    @pytest.mark.ruling("L5")
    def test_a_comment_of_a_person_may_command(self) -> None:
        assert why_ignored(COMMENT, OURS, 100.9) == ""

    @pytest.mark.ruling("L5", "L6")
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"author": "service-account"}, "our own"),
            ({"body": f"/service status\n\n{marker('job-1-status')}"}, "mark"),
            ({"body": "/service status <!--  SERVICE:x"}, "mark"),
            ({"author_type": "Bot"}, "no person"),
            ({"author_type": "Mannequin"}, "no person"),
            ({"author_type": ""}, "no person"),
            ({"author": "dependabot[bot]"}, "no person"),
            ({"author": ""}, "no person"),
            ({"updated_at": 101.0}, "edited"),
            ({"updated_at": 99.0}, "edited"),
            ({"created_at": 99.0, "updated_at": 99.0}, "older"),
        ],
    )
    def test_others_are_ignored_and_it_says_why(self, change: dict[str, object], why: str) -> None:
        assert why in why_ignored(replace(COMMENT, **change), OURS, 100.0)  # type: ignore[arg-type]

    def test_where_it_stands_is_told_by_its_address(self) -> None:
        assert not COMMENT.on_pull_request
        assert replace(COMMENT, url="https://github.com/acme/shop/pull/12#issuecomment-7").on_pull_request


class TestMarks:
    @pytest.mark.ruling("L3")
    def test_a_mark_is_the_last_line(self) -> None:
        mark = marker("job-0123456789ab.3-e12")
        assert mark == "<!-- service:job-0123456789ab.3-e12 -->"
        assert marked(f"text\n\n{mark}") == "job-0123456789ab.3-e12"
        assert marked(f"text\r\n\r\n{mark}\r\n") == "job-0123456789ab.3-e12"

    @pytest.mark.ruling("L3", "L11")
    @pytest.mark.parametrize(
        "body",
        [
            "",
            "<!-- service:a -->\n\ntext",
            "text <!-- service:a -->",
            "> <!-- service:a -->",
            "<!--service:a-->",
            "<!-- service:a  -->",
            "<!-- service: a -->",
            "<!-- service:a --> ",
            "<!-- service:a\u200b -->",
            "<!-- service:../a -->",
            "<!-- service:a --><!-- service:b -->",
        ],
    )
    def test_what_looks_like_a_mark_is_none(self, body: str) -> None:
        assert marked(body) is None

    @pytest.mark.ruling("L6")
    def test_a_mark_anywhere_is_noticed(self) -> None:
        assert holds_mark("> a\n> <!-- service:x -->\nmore")
        assert not holds_mark("<!-- a service: x -->")

    @pytest.mark.parametrize("fact_id", ["", "a b", "a-->", "a\n", "-a", "x" * 300])
    def test_an_id_that_would_break_it_is_a_bug(self, fact_id: str) -> None:
        with pytest.raises(ValueError, match="not the id of a fact"):
            marker(fact_id)


ALL: tuple[Said, ...] = (
    Resume("", "retry"),
    Start(Action.ASK, "scout", "why?"),
    Start(Action.REVIEW, "scout", "it"),
    Start(Action.IMPLEMENT, "scout", "it"),
    Kill(),
    Retry("job-x"),
    Status(),
)


class TestPermitted:
    @pytest.mark.ruling("L5")
    @pytest.mark.parametrize("said", [*ALL, Unknown("x")])
    @pytest.mark.parametrize("permission", ["read", "none", "triage", "", "Write", "owner"])
    def test_only_who_may_write_commands(self, said: Said, permission: str) -> None:
        assert refusal(said, permission, COMMANDS).startswith("only people who may write to this repository")

    @pytest.mark.ruling("L4", "L5")
    @pytest.mark.parametrize("permission", ["write", "maintain", "admin"])
    def test_what_is_allowed_is_carried_out(self, permission: str) -> None:
        assert [refusal(each, permission, COMMANDS) for each in ALL] == [""] * len(ALL)

    @pytest.mark.ruling("L4")
    def test_by_default_only_resume_and_status_are(self) -> None:
        assert [each.word for each in ALL if not refusal(each, "admin", ALLOWED)] == ["resume", "status"]

    @pytest.mark.ruling("L6")
    def test_a_refusal_says_what_to_do_instead(self) -> None:
        assert refusal(Kill("job-x"), "write", ALLOWED) == (
            "`/service kill` is not allowed in comments here: type `service job kill JOB` on the command line, or have"
            " `kill` added to `commands` under `[github]` in the service's settings"
        )
        assert refusal(Unknown("resme", "resume"), "write", ALLOWED) == (
            "`/service` knows no such command: write `/service resume`, if that is meant"
        )
        assert refusal(Unknown("x"), "write", ALLOWED) == (
            "`/service` knows no such command: here it takes `/service resume`, `/service status`"
        )
        assert refusal(Resume("", ""), "write", ALLOWED) == (
            "the verb is missing: write `/service resume` and one of `answer`, `retry`, `continue`, `abort`, `extend`"
        )
        assert refusal(Retry("job-x"), "write", ALLOWED).startswith(
            "`/service retry` is not allowed in comments here: type `service job retry JOB` on the command line"
        )
        assert refusal(Retry(""), "write", COMMANDS) == "the job is missing: write `/service retry JOB`"
        missing = refusal(Start(Action.ASK, "scout", ""), "write", COMMANDS)
        assert missing.endswith("write `/service ask AGENT` and the text behind")

    @pytest.mark.ruling("L11")
    def test_nothing_that_was_written_is_repeated(self) -> None:
        strange = (Unknown("@everyone"), Kill("@everyone"), Retry("@everyone"), Start(Action.ASK, "@everyone", ""))
        for said in strange:
            for permission in ("write", "@everyone"):
                assert "everyone" not in refusal(said, permission, ALLOWED)

    @pytest.mark.ruling("L6")
    def test_after_five_refusals_an_hour_it_falls_silent(self) -> None:
        assert [silent(count) for count in (0, 4, 5, 6)] == [False, False, True, True]

    @pytest.mark.ruling("L6")
    def test_one_command_is_read_with_its_line(self) -> None:
        body = "hello\n/service status  please\nand more\n/service kill"
        assert [(each.line, each.said) for each in spoken_in(body)] == [
            ("/service status  please", Status()),
            ("/service kill", Kill()),
        ]
