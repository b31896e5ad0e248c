"""Who may command the service in comments, and what a refusal says."""

import pytest

from workflows.contract.models import Action
from workflows.github.commands import (
    COMMANDS,
    CommentCommand,
    KillCommand,
    ResumeCommand,
    RetryCommand,
    StartCommand,
    StatusCommand,
    UnknownCommand,
)
from workflows.github.who_may_command import ALLOWED, refusal_reason, silent

ALL: tuple[CommentCommand, ...] = (
    ResumeCommand("", "retry"),
    StartCommand(Action.ASK, "scout", "why?"),
    StartCommand(Action.REVIEW, "scout", "it"),
    StartCommand(Action.IMPLEMENT, "scout", "it"),
    KillCommand(),
    RetryCommand("job-x"),
    StatusCommand(),
)


@pytest.mark.ruling("L5")
@pytest.mark.parametrize("command", [*ALL, UnknownCommand("x")])
@pytest.mark.parametrize("permission", ["read", "none", "triage", "", "Write", "owner"])
def test_only_who_may_write_commands(command: CommentCommand, permission: str) -> None:
    assert refusal_reason(command, permission, COMMANDS).startswith("only people who may write to this repository")


@pytest.mark.ruling("L4", "L5")
@pytest.mark.parametrize("permission", ["write", "maintain", "admin"])
def test_what_is_allowed_is_carried_out(permission: str) -> None:
    assert [refusal_reason(each, permission, COMMANDS) for each in ALL] == [""] * len(ALL)


@pytest.mark.ruling("L4")
def test_by_default_only_resume_and_status_are() -> None:
    assert [each.word for each in ALL if not refusal_reason(each, "admin", ALLOWED)] == ["resume", "status"]


@pytest.mark.ruling("L6")
def test_a_refusal_says_what_to_do_instead() -> None:
    assert refusal_reason(KillCommand("job-x"), "write", ALLOWED) == (
        "`/service kill` is not allowed in comments here: type `service job kill JOB` on the command line, or have"
        " `kill` added to `commands` under `[github]` in the service's settings"
    )
    assert refusal_reason(UnknownCommand("resme", "resume"), "write", ALLOWED) == (
        "`/service` knows no such command: write `/service resume`, if that is meant"
    )
    assert refusal_reason(UnknownCommand("x"), "write", ALLOWED) == (
        "`/service` knows no such command: here it takes `/service resume`, `/service status`"
    )
    assert refusal_reason(ResumeCommand("", ""), "write", ALLOWED) == (
        "the verb is missing: write `/service resume` and one of `answer`, `retry`, `continue`, `abort`, `extend`"
    )
    assert refusal_reason(RetryCommand("job-x"), "write", ALLOWED).startswith(
        "`/service retry` is not allowed in comments here: type `service job retry JOB` on the command line"
    )
    assert refusal_reason(RetryCommand(""), "write", COMMANDS) == "the job is missing: write `/service retry JOB`"
    missing = refusal_reason(StartCommand(Action.ASK, "scout", ""), "write", COMMANDS)
    assert missing.endswith("write `/service ask AGENT` and the text behind")


@pytest.mark.ruling("L11")
def test_nothing_that_was_written_is_repeated() -> None:
    strange = (
        UnknownCommand("@everyone"),
        KillCommand("@everyone"),
        RetryCommand("@everyone"),
        StartCommand(Action.ASK, "@everyone", ""),
    )
    for command in strange:
        for permission in ("write", "@everyone"):
            assert "everyone" not in refusal_reason(command, permission, ALLOWED)


@pytest.mark.ruling("L6")
def test_after_five_refusals_an_hour_it_falls_silent() -> None:
    assert [silent(count) for count in (0, 4, 5, 6)] == [False, False, True, True]
