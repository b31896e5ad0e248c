"""`service host`: the hosts that share one store."""

from typing import Annotated

import typer

from cli.drawing.output import say, say_json
from cli.invocation.options import Json, service_here

app = typer.Typer(help="The hosts that share the work.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def rotate_key(
    wait: Annotated[bool, typer.Option("--wait", help="Also wait for hosts that are away.")] = False,
    json: Json = False,
) -> None:
    """Turn the seal key: make a new one, give it to all hosts, and seal with it once all have it."""
    from bridge.operations.home import seal_keys
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    goes_on = if_interrupted("the new key stays on its way", "service host rotate-key")
    with goes_on, progress("turning the seal key") as step:
        turned = seal_keys.rotate(service_here(), wait=wait, step=step)
    if json:
        say_json(turned)
        return
    say(f"the key {turned.key} seals now" + (f", also on {', '.join(turned.hosts)}" if turned.hosts else ""))
    for host in turned.behind:
        say(f"{host} has it, and seals with it from its next start")
    say(f"{turned.former} still opens what it has sealed; when that is over: service host remove-key {turned.former}")


@app.command()
def remove_key(
    key: Annotated[str, typer.Argument(help="The beginning of its fingerprint; doctor and rotate-key show it.")],
    json: Json = False,
) -> None:
    """Remove a former seal key from all hosts; refused while something is sealed with it."""
    from bridge.operations.home import seal_keys

    removed = seal_keys.remove(service_here(), key)
    say_json(removed) if json else say(f"the key {removed.key} is removed: what it has sealed is not believed any more")
