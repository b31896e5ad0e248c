"""`service doctor`: checks of everything the service depends on, with the command to type."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import FOLDED, Line, Piece
from cli.drawing.looks import Look, of_state
from cli.output import say, say_json

if TYPE_CHECKING:
    from bridge.operations.health.doctor import Finding

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Look at everything the service stands on. Exit status 1 when something is wrong."""
    from bridge.operations.health import doctor
    from bridge.operations.service import Service
    from cli.progress import progress
    from cli.waiting import if_interrupted

    with if_interrupted("not everything was looked at", "service doctor"), progress() as step:
        findings = doctor.examine(Service.locate(), step)
    healthy = doctor.healthy(findings)
    if json:
        say_json({"healthy": healthy, "findings": findings})
    else:
        say(*(line for each in findings for line in lines(each)))
    if not healthy:
        raise typer.Exit(1)


def lines(finding: "Finding") -> list[str]:
    """Return a finding's level and text, with its fix below."""
    first, *more = finding.says.split("\n")
    fix = [Line(f"{'':21}", Piece("fix:", Look.STRONG), f" {finding.fix}")] if finding.fix else []
    below = f"{'':19}{FOLDED}"
    head = Line(Piece(f"{finding.level:8}", of_state(finding.level)), f" {finding.about:11} {first}", below=below)
    return [head, *(Line(f"{below}{each}", below=below) for each in more), *fix]
