"""The manual's table of surfaces names every operation of every surface, and no others (rulings F6, J9)."""

import re

import pytest
from fastapi.routing import APIRoute

from activities.settings.home import Home
from bridge.http.app import create_app
from bridge.http.dashboard.pages import ACTIONS, PAGES, PLAIN
from bridge.http.wire.webhook import PATH as WEBHOOK
from bridge.operations.service import Service
from cli import manual
from cli.invocation.examples import EXAMPLES
from cli.invocation.permitted import INSTEAD, SERVED
from cli.main import NOUNS, command_of
from tests.written import ROOT
from workflows.github.commands import COMMANDS

pytestmark = pytest.mark.ruling("F6", "J9", "K6")
PROBES = {"GET /healthz", "GET /readyz", f"POST {WEBHOOK}"}
HIDDEN = {"completion candidates", "host answer"}
CELLS = ("command line", "HTTP", "page", "comment")


def named(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def section() -> str:
    return manual.text("commands").partition("## On which surface\n")[2]


def column(heading: str) -> set[str]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section().splitlines() if line[:1] == "|"]
    at = rows[0].index(heading)
    assert rows[0][1:] == list(CELLS)
    return {name for row in rows[2:] for name in named(row[at])}


def test_each_endpoint_stands_in_it(home: Home) -> None:
    service = Service(home)
    routes = [route for route in create_app(service).routes if isinstance(route, APIRoute)]
    service.store.dispose()
    served = {f"{method} {route.path}" for route in routes for method in route.methods or ()}
    assert column("HTTP") == served - PROBES


def test_each_page_and_each_of_its_buttons_stands_in_it() -> None:
    assert column("page") == {page.path for page in PAGES} | {each.path for each in ACTIONS} | {
        page.path for page in PLAIN
    }


def test_each_command_of_a_comment_stands_in_it() -> None:
    assert column("comment") == set(COMMANDS)


def test_each_command_stands_in_it_or_is_said_to_be_on_the_command_line_alone() -> None:
    alone = named(section().partition("On the command line alone:")[2])
    assert column("command line") & alone == set()
    assert column("command line") | alone == (SERVED | {*INSTEAD}) - HIDDEN


def test_each_command_has_an_example_and_no_other_has() -> None:
    assert EXAMPLES.keys() == (SERVED | INSTEAD.keys()) - HIDDEN


def test_every_command_that_the_product_names_exists() -> None:
    verbs = {noun: set(getattr(command_of(noun), "commands", ())) for noun in NOUNS}
    folders = ("activities", "bridge", "cli", "workflows")
    files = [
        path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix in {".py", ".md", ".html"}
    ]
    unknown = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        for match in re.finditer(r"service ([a-z-]+) ([a-z][a-z-]+)", path.read_text())
        if verbs.get(match[1]) and match[2] not in verbs[match[1]]
    }
    assert unknown == set()
