"""`service attention`: everything that needs a person."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from cli.dashboard import Web, open_page
from cli.drawing.lines import Piece, ScreenLine, Tone, prose, state_line
from cli.drawing.output import say, say_json
from cli.drawing.words import ago, clock, one_line, way_out_in_words
from cli.invocation.faults import left_alone
from cli.invocation.options import Json, service_here
from workflows.text.plurals import quantity

if TYPE_CHECKING:
    from bridge.operations.orders.attention import AttentionReport, WaitingRound
    from bridge.operations.service import Service
    from workflows.model.rows import TaskRecord

app = typer.Typer(rich_markup_mode=None)
INTERVAL = 1.0
NAMED = 5


@app.command()
def attention(
    watch: Annotated[bool, typer.Option("--watch", help="Show every change until interrupted.")] = False,
    json: Json = False,
    web: Web = False,
) -> None:
    """List what needs you, oldest first, each with the exact command to type."""
    from bridge.operations.home.links import FIRST
    from bridge.operations.orders import attention
    from cli.drawing.screens import can_move

    service = service_here()
    if web:
        open_page(service, FIRST)
    elif not watch:
        waiting = attention.find(service)
        say_json(waiting) if json else say(*_lines(waiting))
    elif json or not can_move(sys.stdout):
        _print_changes(service, json=json)
    else:
        _watch_live(service)


def _watch_live(service: "Service") -> None:
    from bridge.operations.orders import attention
    from cli.drawing.live import LiveView, live
    from cli.drawing.viewport import ViewRow

    with left_alone("service attention --watch"), live() as shown:
        while True:
            lines = _lines(attention.find(service))
            shown.show(LiveView([], [ViewRow(line) for line in lines], lines))
            time.sleep(INTERVAL)


def _print_changes(service: "Service", *, json: bool) -> None:
    from bridge.operations.orders import attention

    shown = None
    while True:
        waiting = attention.find(service)
        if waiting != shown:
            say_json(waiting) if json else say(*_lines(waiting), "")
            sys.stdout.flush()
            shown = waiting
        time.sleep(INTERVAL)


def _lines(waiting: "AttentionReport") -> list[str]:
    lines = [line for round_ in waiting.waiting for line in _waiting(round_)]
    for host in waiting.hosts:
        jobs_wait = quantity(len(host.waiting), "job waits", "jobs wait")
        more = f" and {len(host.waiting) - NAMED} more" if len(host.waiting) > NAMED else ""
        waits = (
            f"{jobs_wait} for it: {', '.join(host.waiting[:NAMED])}{more}" if host.waiting else "no job waits for it"
        )
        lines += [
            f"{host.host}  {waits}",
            f"  {host.says}",
            f"  {host.next}",
        ]
    for trouble in waiting.github:
        lines += [f"github  {one_line(trouble.says, 300)}", *(f"  {command}" for command in trouble.next)]
    for stall in waiting.stalled:
        lines += [f"{stall.what}  stands still: {stall.says}", *(f"  {command}" for command in stall.next)]
    for job in waiting.preflight_failed:
        lines += [
            f"{job.job_id}  preflight failed {ago(job.queued_at)}: {one_line(job.preflight_failed or '', 200)}",
            f"  service job tree {job.job_id}",
        ]
    for way in waiting.conflicts:
        lines += [f"{way.job_id}  blocked by a merge conflict", *(f"  {line}" for line in way_out_in_words(way))]
    for task in waiting.blocked:
        lines += [
            _blocked_line(task),
            prose(f"  because: {one_line(task.reason, 300)}"),
            f"  {task.next}",
        ]
    for how in waiting.undelivered:
        tried = f"{how.channel}, {quantity(how.attempts, 'attempt')}"
        lines += [
            f"{how.job_id}  notification not delivered ({tried}): {one_line(how.error, 200)}",
            f"  it said: {one_line(how.message, 200)}",
        ]
    return lines or ["nothing needs you"]


def _blocked_line(task: "TaskRecord") -> str:
    since = ago(task.ended_at or task.opened_at)
    return state_line(f"{task.root_job_id}  blocked {since}  {task.repo}  {one_line(task.title)}", "blocked")


def _waiting(waits: "WaitingRound") -> list[str]:
    from workflows.policy.prices import dollars

    lines = [
        ScreenLine(
            waits.coordinator_id,
            "  ",
            Piece(f"{waits.kind} round {waits.number}", Tone.ASKS),
            f"  {waits.repo}  {one_line(waits.title)}",
        ),
        f"  since {clock(waits.opened_at)} ({ago(waits.opened_at)}), expires {clock(waits.expires_at)}",
        f"  spent {waits.tokens:,} tokens, {dollars(waits.cost_usd, assumed=waits.price_assumed)}",
    ]
    for question in waits.questions:
        choices = f" [{' | '.join(question.choices)}]" if question.choices else ""
        lines.append(prose(f"  {question.id}: {one_line(question.prompt, 300)}{choices}"))
    lines += [prose(f"  {fail.leg} {fail.state.in_a_sentence}: {one_line(fail.reason, 300)}") for fail in waits.failing]
    return [*lines, *(f"  {command}" for command in waits.commands)]
