"""`service doctor` and `service runtime`: what the service needs and whether it works here."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import FOLDED, Piece, ScreenLine, Tone, of_state
from cli.drawing.output import flush, say, say_json, say_table
from cli.drawing.tables import Column
from cli.drawing.words import one_line
from cli.invocation.options import Json, service_here

if TYPE_CHECKING:
    from bridge.operations.health.findings import Finding
    from bridge.operations.health.runtimes import RuntimeStatus

doctor_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@doctor_app.command()
def doctor(json: Json = False) -> None:
    """Check everything the service needs. Exit status 1 when something is wrong."""
    from bridge.operations.health import doctor
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    findings = []
    with if_interrupted("not everything was checked", "service doctor"), progress() as step:
        for finding in doctor.look(service_here(), step):
            findings.append(finding)
            if not json:
                say(*lines(finding))
                flush()
    healthy = doctor.healthy(findings)
    if json:
        say_json({"healthy": healthy, "findings": findings})
    if not healthy:
        raise typer.Exit(1)


def lines(finding: "Finding") -> list[str]:
    """Return a finding's level and text, with its fix below."""
    first, *more = finding.says.split("\n")
    fix = [ScreenLine(f"{'':21}", Piece("fix:", Tone.STRONG), f" {finding.fix}")] if finding.fix else []
    below = f"{'':19}{FOLDED}"
    head = ScreenLine(Piece(f"{finding.level:8}", of_state(finding.level)), f" {finding.about:11} {first}", below=below)
    return [head, *(ScreenLine(f"{below}{each}", below=below) for each in more), *fix]


runtime_app = typer.Typer(help="See which programs can do the work here.", no_args_is_help=True, rich_markup_mode=None)
HEADINGS = (
    "RUNTIME",
    Column("PROGRAM", leaves=1),
    Column("VERSION", leaves=2),
    Column("WORKS", tone=of_state),
    Column("WHY", least=16),
)


@runtime_app.command(name="list")
def list_(json: Json = False) -> None:
    """List every runtime, its program, and whether it works."""
    from bridge.operations.health import runtimes

    states = runtimes.check_runtimes(service_here())
    rows = [(r.name, r.program, r.version or "-", "yes" if r.works else "no", r.says) for r in states]
    if json:
        say_json({"any_works": runtimes.any_works(states), "runtimes": states})
    else:
        say_table(HEADINGS, rows, "")


@runtime_app.command()
def check(
    runtime: Annotated[str | None, typer.Argument(help="Only this runtime.")] = None,
    json: Json = False,
) -> None:
    """Say what each runtime lacks and what to type. Exit status 1 when none works; one is enough.

    Each installed program builds something in its box, under the policy for check jobs; no model is asked.
    """
    from bridge.operations.health import runtimes

    states = runtimes.check_runtimes(service_here(), runtime, build=True)
    say_json({"any_works": runtimes.any_works(states), "runtimes": states}) if json else say(
        *(line for each in states for line in _lines(each))
    )
    if not runtimes.any_works(states):
        raise typer.Exit(1)


def _lines(runtime: "RuntimeStatus") -> list[str]:
    version = f" {runtime.version}" if runtime.version else ""
    state = "works" if runtime.works else "does not work"
    fix = [ScreenLine(f"{'':11}", Piece("fix:", Tone.STRONG), f" {runtime.fix}")] if runtime.fix else []
    works = Piece(state, Tone.GOOD if runtime.works else Tone.BAD)
    rest = f": {runtime.program}{version}, {runtime.says}"
    return [ScreenLine(f"{runtime.name:10} ", works, rest, below=f"{'':9}{FOLDED}"), *fix, *_checks(runtime)]


def _checks(runtime: "RuntimeStatus") -> list[ScreenLine]:
    checks = runtime.checks
    if checks is None:
        return []
    under = f" under {checks.policy}"
    if not checks.problem:
        tools = f"; in the PATH: {', '.join(checks.tools)}" if checks.tools else ""
        rest = f"{under} a command wrote the worktree and ran what it wrote ({checks.box}){tools}"
        return [ScreenLine(f"{'':11}", Piece("checks:", Tone.STRONG), rest, below=f"{'':9}{FOLDED}")]
    rest = f"{under} nothing can be built: {one_line(checks.problem, 300)}"
    fix = ScreenLine(f"{'':11}", Piece("fix:", Tone.STRONG), f" {checks.fix}")
    return [ScreenLine(f"{'':11}", Piece("checks:", Tone.BAD), rest, below=f"{'':9}{FOLDED}"), fix]
