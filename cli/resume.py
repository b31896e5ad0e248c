"""`service resume`: a person's answer to a paused tree."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.drawing.output import say, say_json, say_next, tell
from cli.invocation.options import Json, service_here

app = typer.Typer(rich_markup_mode=None)


@app.command()
def resume(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="The job that waits, or any job of its task.")],
    verb: Annotated[str, typer.Argument(help="answer, retry, continue, abort or extend.")] = "",
    text: Annotated[list[str] | None, typer.Argument(help='"<id>: <text>" for each question, or instructions.')] = None,
    file: Annotated[Path | None, typer.Option(help="Read the text from a file; `-` is standard input.")] = None,
    round_: Annotated[int | None, typer.Option("--round", help="Refuse the order if another round is open.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Accept an answer that leaves questions open.")] = False,
    other: Annotated[bool, typer.Option("--other", help="Accept an answer that is not one of the choices.")] = False,
    json: Json = False,
) -> None:
    """Answer a task's questions, or decide about its failures. Without a verb it asks you each question."""
    import asyncio

    from bridge.operations.jobs import hosts, jobs, rounds
    from bridge.operations.orders import resume
    from cli.asking.follow_tree import follow_commands
    from cli.asking.questions import TypedAnswer, ask
    from workflows.model.errors import Commands, UsageError

    service = service_here()
    jobs.check_id(job_id)  # the hints repeat it
    if file and text:
        raise UsageError("the text is given twice: as words, and by --file", "leave one of them out")
    if (partial or other) and verb != "answer":
        raise UsageError("--partial and --other are for answers", f'service resume {job_id} answer "<id>: <text>"')
    digest = ""
    if verb:
        words = _read(file) if file else ("\n" if verb == "answer" else " ").join(text or ())
        answer = TypedAnswer(verb, words, partial, other)
    else:
        waiting = rounds.get_open(service, job_id)
        if file or sys.stdin is None or not sys.stdin.isatty():
            raise UsageError(f"{job_id} waits for {' or '.join(waiting.verbs)}", Commands(*waiting.commands))
        answer = ask(waiting) or TypedAnswer("")
        round_, digest = waiting.number, waiting.digest
    verdict = asyncio.run(resume.resume(service, answer.order(job_id, round_, digest)))
    if json:
        say_json({"job_id": job_id, "verb": answer.verb, "message": verdict.message, "applied": verdict.applied})
    else:
        say(*verdict.message.split("\n"))
        if note := hosts.absence_of(service, jobs.get(service, job_id).repo):
            tell(f"note: {note}")
        say_next(*follow_commands(job_id))


def _read(path: Path) -> str:
    """Return the file's whole text. Refuse text that is not UTF-8, since a wrong answer is worse than none."""
    from workflows.model.errors import NotFoundError, UsageError

    piped = str(path) == "-"
    name = "standard input" if piped else path
    try:
        with open(0 if piped else path, "rb", closefd=not piped) as source:
            text = source.read().decode("utf-8-sig")
    except OSError as error:
        raise NotFoundError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: byte {error.start + 1} does not fit") from None
    if "\0" in text:
        raise UsageError(f"{name} is not text: it holds a NUL character")
    return text
