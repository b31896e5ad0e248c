"""Live views on terminals: nothing scrolls, nothing is left behind, and the terminal is restored at the end."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import text

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.drawing.live import LiveView, frame, live
from cli.drawing.screens import Screen
from cli.drawing.viewport import ViewRow
from tests import rows
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.cli import slow, trees
from tests.cli.emulator import Emulator
from tests.cli.seat import CTRL_C, Seat, seated
from tests.waiting import wait_for
from workflows.model.errors import UnreachableError
from workflows.pipeline.plan import RunState

pytestmark = pytest.mark.ruling("K6")
WATCH = ("job", "tree", ROOT, "--watch")
SPEND = "  jobs 99 of 64"


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    """Create a home with a tree of a hundred jobs."""
    made = Service(home)
    trees.sow(made)
    yield made
    made.store.dispose()


@pytest.fixture
def watching(service: Service) -> Iterator[Seat]:
    """Watch the tree in a window of 80 by 24."""
    with seated(WATCH) as seat:
        seat.until_shown("leg-61")
        seat.until(is_drawn)
        yield seat


def test_a_tall_tree_shows_what_matters_on_one_screen(watching: Seat) -> None:
    shown = watching.look().shown
    assert len(shown) == 24
    assert shown[0].startswith("task-0123456789ab  running  build it all")
    assert shown[1].startswith(SPEND)
    assert any("▶ .61 leg-61" in line for line in shown)
    assert any("✘ .83 leg-83" in line for line in shown)
    assert any("more: " in line and line.endswith(" succeeded") for line in shown)
    assert "is printed at the end" in shown[-1]
    assert watching.screen.everything == [], "nothing stands on the usual screen meanwhile"


def test_every_line_is_shown_or_counted(watching: Seat) -> None:
    body = watching.look().shown
    hidden = sum(int(line.split("… ")[1].split()[0]) for line in body if " more: " in line)
    assert hidden + sum(" scout ask: " in line for line in body) == trees.JOBS


def test_a_window_that_is_pulled_is_drawn_anew(watching: Seat) -> None:
    for columns, lines in ((120, 40), (50, 12), (200, 110), (80, 24)):
        watching.resize(columns, lines)
        watching.until(is_drawn)
        assert any("▶ .61 leg-61" in line for line in watching.screen.shown)
    assert watching.screen.entered == 1
    assert watching.screen.everything == []


def is_drawn(screen: Emulator) -> bool:
    """Return whether the title is at the top and the help at the bottom, each once."""
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


def test_a_terminal_that_is_gone_ends_it_also_where_no_signal_says_so(service: Service) -> None:
    with seated(WATCH, before=slow.is_not_told_of_the_end) as seat:
        seat.until_shown("leg-61")
        os.close(seat.person)
        seat.person = os.open(os.devnull, os.O_RDONLY)
        wait_for(lambda: not seat.process.is_alive())
        assert seat.process.exitcode == 1


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


def test_a_view_that_is_suspended_comes_back(watching: Seat) -> None:
    watching.signal(signal.SIGTSTP)  # its group has no shell that could wake it, so it continues at once
    watching.until(lambda screen: screen.entered == 2 and is_drawn(screen))
    watching.press(CTRL_C)
    assert watching.end() == 130
    assert watching.is_as_before()


def test_a_view_that_was_stopped_from_outside_is_drawn_anew(service: Service) -> None:
    with seated(("attention", "--watch")) as seat:
        seat.until_shown("nothing needs you")
        seat.signal(signal.SIGSTOP)
        os.write(seat.program, b"[1]+  Stopped\n$ fg\n")
        seat.until_shown("$ fg")
        seat.signal(signal.SIGCONT)
        seat.until(lambda screen: not any("$ fg" in line for line in screen.shown))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP])
def test_a_signal_at_any_step_of_a_change_leaves_the_terminal_as_it_was(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: None)  # a suspended process that goes on at once
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        step, ended = 0, False
        while not ended:
            step += 1
            written, ended = signalled(number, step)
            screen = Emulator(80, 24)
            screen.feed(written.replace("\n", "\r\n"))
            left = (screen.cursor, screen.wraps, not screen.alternate)
            assert all(left), f"the signal came at step {step}"
            assert number != signal.SIGTSTP or "the title" in screen.everything
    finally:
        signal.signal(signal.SIGINT, before)
    assert step > 50


OUTSIDE = ("Live.__init__", "Live.get_renderable", "Live.print_whole")
"""What runs before the view handles signals, or after."""


def signalled(number: int, at: int) -> tuple[str, bool]:
    """Return what a view writes that is sent a signal at this step, and whether it ended before."""
    steps = 0

    def traced(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        name = frame.f_code.co_qualname
        if event == "line":
            steps += 1
            if steps == at:
                signal.raise_signal(number)
        return traced if name.startswith("Live.") and name not in OUTSIDE else None

    written, tracing = StringIO(), sys.gettrace()
    with redirect_stdout(written), suppress(KeyboardInterrupt, SystemExit):
        try:
            sys.settrace(traced)
            with live() as shown:
                shown.show(LiveView(["the title"], [], ["the title"]))
        finally:
            sys.settrace(tracing)
    return written.getvalue(), steps < at


@pytest.mark.long
def test_ctrl_z_at_any_moment_leaves_the_view_whole(watching: Seat) -> None:
    def after_another(screen: Emulator) -> bool:
        watching.signal(signal.SIGTSTP)
        return screen.entered > 20

    watching.until(after_another)
    watching.until(is_drawn)
    watching.press(CTRL_C)
    assert watching.end() == 130
    assert watching.is_as_before()


def test_no_colour_is_no_colour(service: Service) -> None:
    with seated(WATCH, environment={"NO_COLOR": "1"}) as seat:
        seat.until_shown("leg-61")
        assert not re.search(r"\x1b\[[1-9][0-9;]*m", seat.written)
    with seated(WATCH) as seat:
        seat.until_shown("leg-61")
        assert "\x1b[36mrunning\x1b[0m" in seat.written


def test_a_run_is_watched_on_a_screen_of_its_own(service: Service) -> None:
    rows = trees.begin_run(service)
    with seated(("pipeline", "watch", trees.RUN)) as seat:
        seat.until_shown("Too tall for this window")
        assert seat.screen.shown[0].startswith(f"{trees.RUN}  nightly  running")
        assert any("s-1 running" in line for line in seat.screen.shown)
        assert any(re.fullmatch(r" *… \d+ more: \d+ pending", line) for line in seat.screen.shown)
        trees.change_run(service, rows, state=RunState.FAILED, finished_at=time.time(), revision=2)
        assert seat.end() == 1
        assert seat.is_as_before()
    assert seat.screen.everything[0].startswith(f"{trees.RUN}  nightly  failed")
    assert sum(line.startswith("  s-") for line in seat.screen.everything) == trees.STAGES


def test_what_a_stage_asks_meanwhile_is_asked_on_the_usual_screen(service: Service) -> None:
    rows = trees.begin_run(service)
    trees.ask(service)
    trees.change_run(service, rows, state=RunState.AWAITING_HUMAN, revision=2)
    with seated(("pipeline", "watch", trees.RUN)) as seat:
        seat.until(lambda screen: not screen.alternate and any(line.startswith("answer:") for line in screen.shown))
        assert seat.is_as_before()
        seat.press("\n")
        seat.until(lambda screen: screen.alternate and "  nightly  awaiting_human" in screen.shown[0])
        seat.press(CTRL_C)
        assert seat.end() == 130
        assert seat.is_as_before()
    assert sum("later: service resume" in line for line in seat.screen.everything) == 1


def test_who_waits_for_a_tree_is_asked_and_the_line_of_progress_makes_room(service: Service) -> None:
    trees.ask(service)
    words = ("agent", "ask", "scout", "look", "--repo", "acme/shop", "--wait")
    with seated(words, before=slow.starts) as seat:
        seat.until_shown("answer:")
        assert [line for line in seat.screen.shown if line][-1] == "answer:"
        seat.press("\n")
        seat.until_shown("needs you; ")
        seat.press(CTRL_C)
        assert seat.end() == 130
    assert not any("needs you; " in line for line in seat.screen.everything)


def test_who_waits_for_a_tree_reads_each_step_once(home: Home) -> None:
    service, waits = Service(home), "waits for its host to start it"
    ran = rows.event(2, kind="job_begun", message="first job (scout ask) started")
    done = rows.event(3, kind="job_ended", message="first job (scout ask) succeeded")
    steps = (
        (rows.event(1, kind="job_queued", message=f"first job (scout ask) is queued: {waits}"), "queued", waits),
        (ran, "running", ""),
        (done, "succeeded", ""),
    )
    seeds.write(service, seeds.task())
    with seated(("agent", "ask", "scout", "look", "--repo", "acme/shop", "--wait"), 160, 40, slow.starts) as seat:
        for number, (event, state, why) in enumerate(steps):
            ended = number if state == "succeeded" else None
            seeds.write(service, seeds.job(state=state, reason=why, ended_at=ended, revision=2 * number), event)
            seat.until_shown(event.message)
            seeds.write(service, seeds.job(state=state, reason=why, ended_at=ended, revision=2 * number + 1))
        seeds.write(service, seeds.task(state="done", ended_at=3.0, revision=9))
        assert seat.end() == 0
    service.store.dispose()
    printed = seat.screen.everything
    assert [sum(event.message in line for line in printed) for event, _, _ in steps] == [1, 1, 1]
    assert not [line for line in printed if line.startswith(ROOT)], "no row says what an event has said"


def test_long_lines_are_whole_where_there_is_room_and_cut_where_there_is_none() -> None:
    rows = [ViewRow(f"{number} {'word ' * 10}") for number in range(5)]
    roomy = frame(LiveView(["title"], rows, []), Screen(30, 24, colours=False))
    assert [line.rstrip() for line in roomy[:5]] == [
        "title",
        "",
        "0 word word word word word",
        "  | word word word word word",
        "1 word word word word word",
    ]
    narrow = frame(LiveView(["title"], rows, []), Screen(30, 9, colours=False))
    assert [line[:2] for line in narrow[2:7]] == ["0 ", "1 ", "2 ", "3 ", "4 "]
    assert len(narrow) == 9
    for lines in range(1, 9):
        assert len(frame(LiveView(["title"], rows, []), Screen(30, lines))) == lines
