"""Progress of lasting commands, below all other output, and Ctrl-C, which ends them with a sentence."""

import io
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.drawing.output import remember_words, say, tell
from cli.drawing.progress import progress
from cli.main import main
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.cli import slow, trees
from tests.cli.seat import CTRL_C, Seat, seated
from tests.cli.slow import SAYS
from tests.waiting import wait_for
from workflows.model.states import TaskState

pytestmark = pytest.mark.ruling("K6")
SWEEP = ("repo", "sweep")
LIVES = re.compile(r"^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .*\$|^Ctrl-C|^Too tall")
"""A live view, or a progress line."""
LOOKING = re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] looking at acme/shop, 1 of 1  \d+ s")


@pytest.fixture
def service(home: Home, tmp_path: Path) -> Iterator[Service]:
    """Create a home with a running tree, and a repository on this host."""
    made = Service(home)
    trees.sow(made)
    trees.begin_run(made)
    seeds.repo(made, str(tmp_path), host=made.settings.host)
    yield made
    made.store.dispose()


@pytest.fixture
def sweeping(service: Service) -> Iterator[Seat]:
    """Run a sweep that waits for our signal."""
    with seated(SWEEP, before=partial(slow.waits, "bridge.operations.home.gc:_sweep_repository")) as seat:
        seat.until(lambda screen: [line for line in screen.shown if LOOKING.fullmatch(line)])
        yield seat


def test_it_is_one_line_and_gone_at_the_end(sweeping: Seat) -> None:
    for columns, lines in ((30, 10), (120, 40), (80, 24)):
        sweeping.resize(columns, lines)
        sweeping.until(lambda screen: "looking" in screen.shown[0] and len(screen.shown[0]) < screen.columns)
        assert sum("looking" in line for line in sweeping.screen.everything) == 1
    slow.go()
    assert sweeping.end() == 0
    assert sweeping.is_as_before()
    assert not any("looking" in line for line in sweeping.screen.everything)
    assert sweeping.screen.everything[0].startswith("REPOSITORY")


def test_a_terminal_without_a_cursor_gets_none(service: Service) -> None:
    before = partial(slow.lasts, "bridge.operations.home.gc:sweep")
    with seated(("attention",), environment={"TERM": "dumb"}) as seat:
        assert seat.end() == 0
        assert "\x1b" not in seat.written
    with seated(SWEEP, environment={"TERM": "dumb"}, before=before) as seat:
        wait_for((service.home.root / "lasts").exists)
        seat.press(CTRL_C)
        assert seat.end() == 130
        assert "\x1b" not in seat.written


def test_a_pipe_gets_none(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.drawing.progress._BEGIN", 0.0)
    assert main(["repo", "sweep"]) == 0
    assert capsys.readouterr().err == ""


class Screen(io.StringIO):
    """A terminal that records its output."""

    encoding = "ascii"

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_a_line_for_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cli.drawing.progress.SLOW_SECONDS", 0.05)
    shown = ""
    with progress("looking") as step:
        for what in ("looking", "waiting for the namespace team"):
            step(what)
            while what not in shown:
                shown += capsys.readouterr().err
                time.sleep(0.01)
        time.sleep(0.2)
    assert shown + capsys.readouterr().err == "looking …\nwaiting for the namespace team …\n"


def test_what_is_printed_meanwhile_stands_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("cli.drawing.progress._BEGIN", 0.0)
    monkeypatch.setattr("cli.drawing.progress._TICK", 0.001)
    monkeypatch.setenv("TERM", "xterm")
    remember_words([])
    with progress("working \x1b[2J") as step:
        for number in range(200):
            step(f"number {number}")
            say(f"said {number}")
            tell(f"told {number}")
    lines = [line.rpartition("\x1b[J")[2] for line in screen.getvalue().split("\n")]
    assert lines == [*(f"{how} {number}" for number in range(200) for how in ("said", "told")), ""]
    assert "\x1b[2J" not in screen.getvalue()
    assert screen.getvalue().isascii(), "no signs that the terminal cannot show"


LASTS = [
    ("backup copied", "bridge.operations.home.backup:make", "nothing was copied"),
    ("restore copied", "bridge.operations.home.backup:restore", "the home is as it was"),
    ("repo sweep", "bridge.operations.home.gc:sweep", "what is removed by now is gone"),
    ("doctor", "bridge.operations.health.doctor:look", "not everything was checked"),
    ("github sync", "bridge.operations.github.account:sync", "it will be read all the same"),
    ("daemon start", "bridge.daemon.control:start", "the daemon goes on starting"),
    ("daemon stop", "bridge.daemon.control:stop", "the daemon goes on stopping"),
]


@pytest.mark.parametrize(("words", "target", "sentence"), LASTS)
def test_ctrl_c_ends_it_with_a_sentence(service: Service, words: str, target: str, sentence: str) -> None:
    with seated(words.split(), before=partial(slow.lasts, target)) as seat:
        seat.until_shown(SAYS)
        seat.press(CTRL_C)
        assert seat.end() == 130
        assert seat.is_as_before()
        text = "\n".join(seat.screen.everything)
    assert f"error: interrupted: {sentence}" in text
    assert "\ntry: service " in text
    assert SAYS not in text
    assert "Traceback" not in seat.written


@pytest.mark.parametrize(
    ("words", "back"),
    [
        (("job", "events", ROOT, "--follow"), f"service job events {ROOT} --follow"),
        (("job", "tree", ROOT, "--watch"), f"service job tree {ROOT} --watch"),
        (("attention", "--watch"), "service attention --watch"),
        (("pipeline", "watch", trees.RUN), "service attention"),
        (("agent", "ask", "scout", "look", "--repo", "acme/shop", "--wait"), f"service resume {ROOT}"),
    ],
)
def test_ctrl_c_while_something_is_watched_says_how_to_come_back(
    service: Service, words: tuple[str, ...], back: str
) -> None:
    with seated(words, before=slow.starts) as seat:
        seat.until(lambda screen: [line for line in screen.shown if LIVES.search(line)])
        seat.press(CTRL_C)
        assert seat.end() == 130
        assert seat.is_as_before()
    rows = seat.screen.everything
    assert "It goes on without you. To come back:" in rows[-3:]
    assert rows[-1] == f"  {back}"
    assert not any(LIVES.search(line) for line in rows)
    assert "Traceback" not in seat.written


def test_who_follows_sees_what_runs_for_how_long_and_the_spend(service: Service) -> None:
    with seated(("job", "events", ROOT, "--follow")) as seat:
        seat.until(lambda screen: [each for each in screen.shown if "running leg-61 " in each and " tokens, $" in each])
        trees.finish(service)
        assert seat.end() == 0
        assert not any("running leg-61" in line for line in seat.screen.everything)


def test_what_waits_is_watched_on_a_screen_of_its_own(service: Service) -> None:
    for number in range(40):
        root = f"job-{number:012d}"
        task = seeds.task(root, state=TaskState.BLOCKED, reason=f"reason {number}", waits_for="retry", ended_at=number)
        seeds.write(service, task, seeds.job(root, state="failed", ended_at=1.0))
    with seated(("attention", "--watch")) as seat:
        seat.until_shown("Too tall for this window")
        assert seat.screen.shown[0].startswith("job-000000000000  blocked")
        assert any(re.fullmatch(r" *… \d+ more", line) for line in seat.screen.shown)
        seat.resize(100, 200)
        seat.until(lambda screen: screen.shown[-1].startswith("Ctrl-C"))
        seat.press(CTRL_C)
        assert seat.end() == 130
    assert sum("  blocked " in line for line in seat.screen.everything) == 40
