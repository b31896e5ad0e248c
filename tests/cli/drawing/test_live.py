"""Live views on terminals: nothing scrolls, nothing is left behind, and the terminal is as it was at the end."""

import signal
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from activities.settings.home import Home
from bridge.operations.service import Service
from tests.bridge.seeds import ROOT
from tests.cli.drawing import trees
from tests.cli.emulator import Emulator
from tests.cli.seat import CTRL_C, Seat, seated
from workflows.model.errors import UnreachableError

pytestmark = pytest.mark.ruling("K6")
WATCH = ("job", "tree", ROOT, "--watch")
SPEND = "  jobs 99 of 64"


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    """A home with a tree of a hundred jobs."""
    made = Service(home)
    trees.sow(made)
    yield made
    made.store.dispose()


@pytest.fixture
def watching(service: Service) -> Iterator[Seat]:
    """Somebody watches it in a window of 80 by 24."""
    with seated(WATCH) as seat:
        seat.until_shown("leg-61")
        yield seat


def test_a_tall_tree_shows_what_matters_on_one_screen(watching: Seat) -> None:
    shown = watching.look().shown
    assert len(shown) == 24
    assert shown[0].startswith("task-0123456789ab  open  build it all")
    assert shown[1].startswith(SPEND)
    assert any("▶ .61 leg-61" in line for line in shown)
    assert any("✘ .83 leg-83" in line for line in shown)
    assert any("more: " in line and line.endswith(" succeeded") for line in shown)
    assert "is printed at the end" in shown[-1]
    assert watching.screen.everything == [], "nothing stands on the usual screen meanwhile"


def test_every_line_is_shown_or_counted(watching: Seat) -> None:
    body = watching.look().shown
    told = sum(int(line.split("… ")[1].split()[0]) for line in body if " more: " in line)
    assert told + sum(" scout ask: " in line for line in body) == trees.JOBS


def test_a_window_that_is_pulled_is_drawn_anew(watching: Seat) -> None:
    for columns, lines in ((120, 40), (50, 12), (200, 110), (80, 24)):
        watching.resize(columns, lines)
        watching.until(is_drawn)
        assert any("▶ .61 leg-61" in line for line in watching.screen.shown)
    assert watching.screen.entered == 1
    assert watching.screen.everything == []


def is_drawn(screen: Emulator) -> bool:
    """Title at the top, help at the bottom, each once."""
    titles = [number for number, line in enumerate(screen.shown) if line.startswith("task-")]
    foot = [line for line in screen.shown if line.startswith(("Too tall", "Ctrl-C"))]
    return titles == [0] and foot == [screen.shown[-1]]


def test_at_the_end_all_of_it_stands_on_the_usual_screen_once(service: Service, watching: Seat) -> None:
    watching.resize(100, 30)
    trees.finish(service)
    assert watching.end() == 0
    assert watching.is_as_before()
    printed = watching.screen.everything
    assert sum(line.startswith("task-") for line in printed) == 1
    assert sum(" scout ask: succeeded" in line for line in printed) == trees.JOBS - 1
    assert not any("Ctrl-C" in line or " more: " in line for line in printed)


def test_ctrl_c_prints_all_of_it_and_how_to_come_back(watching: Seat) -> None:
    watching.press(CTRL_C)
    assert watching.end() == 130
    assert watching.is_as_before()
    printed = watching.screen.everything
    assert sum(" scout ask: " in line for line in printed) == trees.JOBS
    assert printed[-2:] == ["It goes on without you. To come back:", f"  service job tree {ROOT} --watch"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_order_to_end_leaves_the_terminal_as_it_was(watching: Seat, number: int) -> None:
    watching.signal(number)
    assert watching.end() == 128 + number
    assert watching.is_as_before()
    assert watching.screen.everything == []


def test_a_store_that_breaks_leaves_the_terminal_as_it_was(service: Service, watching: Seat) -> None:
    with service.store.begin() as connection:
        connection.execute(text("DROP TABLE jobs"))
    assert watching.end() == UnreachableError.exit_code
    assert watching.is_as_before()
    assert watching.screen.everything[0].startswith("error: ")
    assert "Traceback" not in watching.written


def test_a_tree_that_is_over_is_only_printed(service: Service) -> None:
    trees.finish(service)
    with seated(WATCH) as seat:
        assert seat.end() == 0
        assert seat.screen.entered == 0
        assert sum(" scout ask: succeeded" in line for line in seat.screen.everything) == trees.JOBS - 1


def test_a_terminal_without_a_cursor_is_written_to_as_a_pipe_is(service: Service) -> None:
    with seated(WATCH, environment={"TERM": "dumb"}) as seat:
        seat.until(lambda screen: any("leg-99" in line for line in screen.everything))
        trees.finish(service)
        assert seat.end() == 0
        assert "\x1b" not in seat.written
        assert sum(line.startswith("task-") for line in seat.screen.everything) == 2
