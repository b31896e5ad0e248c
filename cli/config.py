"""`service config`: the settings in force."""

from typing import Annotated

import typer

from cli.output import say, say_json, say_table

app = typer.Typer(help="Check and show the settings.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def check() -> None:
    """Read the settings and say what is wrong with them."""
    from activities.settings.home import Home
    from activities.settings.load import load_settings

    home = Home.locate()
    load_settings(home)
    say(f"{home.config} is good" if home.config.exists() else f"no {home.config}: the defaults are in force")


@app.command()
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value comes from.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print every setting."""
    from activities.settings.home import Home
    from activities.settings.load import describe

    settings = describe(Home.locate())
    if json:
        say_json({s.key: {"value": s.value, "origin": s.origin} if origin else s.value for s in settings})
    elif origin:
        say_table(("SETTING", "VALUE", "ORIGIN"), [(s.key, str(s.value), s.origin) for s in settings], "")
    else:
        say_table(("SETTING", "VALUE"), [(s.key, str(s.value)) for s in settings], "")
