"""`service mcp`: the door for other tools. Without a command it speaks MCP itself (`mcp_stdio`)."""

from typing import Annotated

import typer

from cli.drawing.output import say, say_json, say_next, say_table
from cli.invocation.options import Json, service_here

app = typer.Typer(
    help="Let Claude Code, Codex and other tools use the service; without a command, speak MCP on standard input.",
    rich_markup_mode=None,
)
Client = Annotated[str, typer.Argument(help="claude, codex, kimi, opencode, cursor or vscode.")]


@app.callback(invoke_without_command=True)
def speak(context: typer.Context) -> None:
    """Let other tools use the service by MCP; without a command, speak MCP on standard input and output."""
    if context.invoked_subcommand is None:
        from cli import mcp_stdio

        mcp_stdio.run()


@app.command()
def add(
    client: Client,
    scope: Annotated[
        str | None, typer.Option(help="read: look; ask (the default): also start read-only work; act: all.")
    ] = None,
    by_hand: Annotated[bool, typer.Option("--print", help="Print the entry instead of writing it.")] = False,
    json: Json = False,
) -> None:
    """Add the service to a tool: it gets a token of its own, and an entry in its configuration."""
    from bridge.operations.access import mcp_clients

    service = service_here()
    added = mcp_clients.add(service, client, scope, by_hand=by_hand)
    if json:
        say_json(added)
    elif added.entry:
        say(added.entry)
    elif added.changed:
        say(f"{client} may {added.scope} from now on: {added.where}. Start it again if it runs.")
        say_next(f"service mcp remove {client}")
    else:
        say(f"{client} has it already, with the scope {added.scope}; nothing was changed")


@app.command()
def remove(client: Client, json: Json = False) -> None:
    """Take the service out of a tool again: its token opens nothing from now on."""
    from bridge.operations.access import mcp_clients

    mcp_clients.remove(service_here(), client)
    say_json({"removed": client}) if json else say(f"{client} is removed")


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the tools that the service was added to, and what each may do."""
    from bridge.operations.access import mcp_clients
    from cli.drawing.words import ago

    clients = mcp_clients.every(service_here())
    if json:
        say_json(clients)
        return
    rows = [(client.client, client.scope, ago(client.made_at), client.wrong) for client in clients]
    say_table(("TOOL", "SCOPE", "ADDED", ""), rows, "no tool uses the service yet; add one: service mcp add claude")
