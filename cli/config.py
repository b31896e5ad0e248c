"""`service config`: the settings in force."""

from typing import Annotated

import typer

from cli.output import say, say_json

app = typer.Typer(help="Check and show the settings.", no_args_is_help=True, rich_markup_mode=None)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def check(json: Json = False) -> None:
    """Read the settings and say what is wrong with them."""
    from activities.settings.home import Home
    from activities.settings.load import load_settings

    home = Home.locate()
    load_settings(home)
    if json:
        say_json({"path": str(home.config), "exists": home.config.exists()})
        return
    say(f"{home.config} is good" if home.config.exists() else f"no {home.config}: the defaults are in force")


@app.command()
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value comes from.")] = False,
    json: Json = False,
) -> None:
    """Print every setting, as a file that could be `config.toml`; below, what running processes do not know yet."""
    from bridge.operations import settings
    from bridge.operations.service import Service

    service = Service.locate()
    if json:
        say_json(settings.as_json(service, origins=origin))
    else:
        say(*settings.lines(service, origins=origin))
