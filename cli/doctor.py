"""`service doctor`: what is well, what is not, and what to type."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import say, say_json

if TYPE_CHECKING:
    from bridge.operations.doctor import Finding

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Look at everything the service stands on. Exit status 1 when something is wrong."""
    from bridge.operations import doctor
    from bridge.operations.service import Service

    findings = doctor.examine(Service.locate())
    say_json(doctor.as_json(findings)) if json else say("\n".join(map(line, findings)))
    if not doctor.healthy(findings):
        raise typer.Exit(1)


def line(finding: "Finding") -> str:
    """How it is, what it is, and the way out below."""
    says = finding.says.replace("\n", "\n" + " " * 21)
    fix = f"\n{'':21}fix: {finding.fix}" if finding.fix else ""
    return f"{finding.level:8} {finding.about:11} {says}{fix}"
