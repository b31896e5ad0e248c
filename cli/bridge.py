"""`service bridge`: the HTTP interface for programs."""

from typing import Annotated

import typer

from cli.drawing.output import flush, say, say_json, say_table, tell
from cli.invocation.options import Json, service_here

app = typer.Typer(help="The HTTP interface for programs.", no_args_is_help=True, rich_markup_mode=None)
tokens = typer.Typer(help="The operator's own token, and others with a name and a scope.", rich_markup_mode=None)
app.add_typer(tokens, name="token")
Name = Annotated[str, typer.Argument(help="Its name, which records and the audit log show.")]


@app.command()
def serve(
    addr: Annotated[str | None, typer.Option(help="HOST, HOST:PORT, :PORT or [IPV6]:PORT.")] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Allow an address that other machines reach, in clear text.")
    ] = False,
) -> None:
    """Serve in the foreground until Ctrl-C. The daemon already serves in the background."""
    from bridge.http import process
    from bridge.machine import token

    service = service_here()
    token_line = f"token: {token.ensure(service.home)}"

    def announce(url: str) -> None:
        say(f"bridge listens on {url}", token_line)
        flush()  # a reader of a file or a pipe would wait until the bridge ends

    process.serve(service, addr, allow_remote=allow_remote, announce=announce)


@tokens.callback(invoke_without_command=True)
def token_path(
    context: typer.Context,
    rotate: Annotated[bool, typer.Option("--rotate", help="Replace it; the old one becomes invalid.")] = False,
    json: Json = False,
) -> None:
    """Print the path of the operator's token, never the token itself. The commands below manage named tokens."""
    from activities.settings.home import Home
    from bridge.machine import token

    if context.invoked_subcommand is None:
        home = Home.locate()
        path = str(token.rotate(home) if rotate else token.ensure(home))
        say_json({"path": path}) if json else say(path)


@tokens.command()
def add(
    name: Name,
    scope: Annotated[str, typer.Option(help="read: look; ask: also start work; act: also people's decisions.")],
    json: Json = False,
) -> None:
    """Make a token and print it once; only its digest is stored."""
    from bridge.operations.access import tokens

    made = tokens.add(service_here(), name, scope)
    if json:
        say_json({"name": name, "scope": scope, "token": made})
        return
    say(made)
    tell(f"{name} may {scope}; it is shown only now. To take it back: service bridge token remove {name}")


@tokens.command(name="list")
def list_(json: Json = False) -> None:
    """List the named tokens, and what each may do."""
    from bridge.operations.access import tokens
    from cli.drawing.words import ago

    known = tokens.every(service_here())
    if json:
        say_json([each.model_dump(mode="json", exclude={"digest"}) for each in known])
        return
    nothing = "no tokens but the operator's own; make one: service bridge token add NAME --scope read"
    say_table(("NAME", "SCOPE", "MADE"), [(each.name, each.scope, ago(each.made_at)) for each in known], nothing)


@tokens.command()
def remove(name: Name, json: Json = False) -> None:
    """Revoke a token: at once on this host, within seconds on others."""
    from bridge.operations.access import tokens

    tokens.remove(service_here(), name)
    say_json({"removed": name}) if json else say(f"{name} is removed")
