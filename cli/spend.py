"""`service spend`: the cost by day, agent, repository and model."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.output import say, say_json, say_table
from cli.drawing.tables import Column
from cli.invocation.options import Json, service_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.operations.jobs.spend import SpendLine

app = typer.Typer(add_completion=False, rich_markup_mode=None)
NUMBERS = [
    Column(heading, right=True) for heading in ("JOBS", "TOKENS_IN", "TOKENS_OUT", "DOLLARS", "REQUESTS", "REPAIRED")
]


@app.command()
def spend(
    days: Annotated[int, typer.Option(min=1, max=366, help="Number of days in UTC, today included.")] = 30,
    json: Json = False,
) -> None:
    """Show tokens and dollars by day, agent, repository and model. `~` marks sums that are partly estimated.

    REQUESTS counts calls of models, as far as programs report them. REPAIRED counts results that an agent had to
    correct.
    """
    from bridge.operations.jobs import spend

    spending = spend.find(service_here(), days)
    if json:
        say_json(spend.as_json(spending))
        return
    if not spending.total.jobs:
        say(f'no job in the last {days} days; start one: service agent ask NAME "MESSAGE" --repo OWNER/NAME')
        return
    for heading, lines in (
        ("DAY", [line for line in spending.days if line.used.jobs]),
        ("AGENT", spending.agents),
        ("REPO", spending.repos),
        ("MODEL", spending.models),
    ):
        _say(heading, lines)
        say()
    _say("TOTAL", [spend.SpendLine(f"{days} days", spending.total)])


def _say(heading: str, lines: "Sequence[SpendLine]") -> None:
    from cli.drawing.words import LONGEST, one_line
    from workflows.policy.prices import dollars

    rows = [
        (
            one_line(line.name, LONGEST) or "unknown",
            f"{line.used.jobs:,}",
            f"{line.used.input_tokens:,}",
            f"{line.used.output_tokens:,}",
            dollars(line.used.cost_usd, assumed=line.used.price_assumed),
            "-" if line.used.requests is None else f"{line.used.requests:,}",
            f"{line.used.repaired:,}",
        )
        for line in lines
    ]
    say_table((Column(heading, least=12, plain=60), *NUMBERS), rows, "")
