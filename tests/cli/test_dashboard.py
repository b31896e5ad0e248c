"""`service dashboard` and `--web`: the right page, by a one-time link; no browser is opened here."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
import typer

from activities.settings import ready
from activities.settings.home import Home
from bridge.machine import dashboard_link
from bridge.operations.service import Service
from cli import dashboard
from cli.main import main
from tests.bridge import seeds

pytestmark = pytest.mark.ruling("M6", "K6")
LEG = f"{seeds.ROOT}.1"


class Terminal:
    """Types commands, and records the links that a browser would open."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[str] = []
        self._capsys = capsys
        monkeypatch.setattr(typer, "launch", self.opened.append)
        monkeypatch.setattr(dashboard, "_is_watched", lambda: True)
        monkeypatch.setenv("DISPLAY", ":0")
        monkeypatch.delenv("SSH_CONNECTION", raising=False)

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main(list(words))
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    """Create a service with a tree with a leg, a pipeline, and this very process as the bridge."""
    made = Service(home)
    seeds.write(made, seeds.task(), seeds.job(), seeds.job(LEG))
    seeds.repo(made)
    seeds.register(made)
    ready.say(home.bridge_ready, made.reading.in_use(), "127.0.0.1:8791")
    yield made
    made.store.dispose()


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(capsys, monkeypatch)


def leads_to(link: str) -> str:
    return parse_qs(urlsplit(link).query)["to"][0]


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("dashboard", "/ui/"),
        (f"dashboard {seeds.ROOT}", f"/ui/trees/{seeds.ROOT}"),
        (f"dashboard {LEG}", f"/ui/jobs/{LEG}"),
        ("dashboard /ui/memory", "/ui/memory"),
        ("dashboard /ui/memory?q=a&agent=b", "/ui/memory?q=a&agent=b"),
        ("attention --web", "/ui/"),
        (f"job show {LEG} --web", f"/ui/jobs/{LEG}"),
        ("job show review-0123456789ab --web", "/ui/reviews"),
        (f"job tree {LEG} --web", f"/ui/trees/{seeds.ROOT}"),
        ("pipeline show nightly --web", "/ui/pipelines/nightly"),
        ("job list --web", "/ui/trees"),
        ("job list --agent scout --state done --web", "/ui/trees?agent=scout&state=done"),
        ("job list --jobs --web", "/ui/jobs"),
        (f"job list --tree {LEG} --web", f"/ui/trees/{seeds.ROOT}"),
        ("job list --agent scout --roots --pr 7 --web", "/ui/jobs?agent=scout&pr=7&roots=1"),
        ("pipeline runs --web", "/ui/runs"),
        ("pipeline runs --pipeline nightly --web", "/ui/pipelines/nightly"),
    ],
)
def test_it_prints_the_link_of_the_page_and_opens_it(
    service: Service, terminal: Terminal, words: str, page: str
) -> None:
    code, out, err = terminal(*words.split())
    assert (code, err) == (0, "")
    [link] = terminal.opened
    assert out == f"{link}\n"
    assert link.startswith("http://127.0.0.1:8791/ui/enter?code=")
    assert leads_to(link) == page
    assert dashboard_link.take(service.home, parse_qs(urlsplit(link).query)["code"][0])


def test_print_opens_nothing(service: Service, terminal: Terminal) -> None:
    code, out, _ = terminal("dashboard", "--print")
    assert (code, terminal.opened) == (0, [])
    assert out.startswith("http://127.0.0.1:8791/ui/enter?code=")


def test_in_a_pipe_it_is_only_printed(service: Service, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "_is_watched", lambda: False)
    code, out, err = terminal("job", "list", "--web")
    assert (code, err, terminal.opened) == (0, "", [])
    assert out.startswith("http://127.0.0.1:8791/ui/enter?code=")


def test_without_a_browser_it_is_only_printed(
    service: Service, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    code, out, err = terminal("job", "tree", LEG, "--web")
    assert (code, terminal.opened) == (0, [])
    assert "There is no browser here" in err
    assert out.startswith("http://127.0.0.1:8791/ui/enter?code=")


def test_who_came_by_ssh_is_told_how_to_open_it_at_home(
    service: Service, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = terminal("dashboard")
    assert (code, terminal.opened) == (0, [])
    assert "ssh -L 8791:127.0.0.1:8791 " in err


def test_the_link_goes_by_the_address_that_people_use(service: Service, terminal: Terminal) -> None:
    service.home.config.write_text('[bridge]\nurl = "https://agents.example.org"\n')
    assert terminal("dashboard", "--print")[1].startswith("https://agents.example.org/ui/enter?code=")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("dashboard x", 2, "'x' is not a job id"),
        ("dashboard http://evil.test/ui/", 2, "is not a job id"),
        ("dashboard job-ffffffffffff", 4, "no job job-ffffffffffff"),
        ("dashboard --open", 2, "No such option"),
        ("job tree job-ffffffffffff --web", 4, "no job"),
        ("pipeline show weekly --web", 4, "weekly"),
        ("pipeline show prun-0123456789ab --web", 4, "prun-0123456789ab"),
        ("pipeline runs --pipeline weekly --web", 4, "weekly"),
    ],
)
def test_a_mistake_opens_nothing_and_is_answered_by_a_sentence(
    service: Service, terminal: Terminal, words: str, code: int, sentence: str
) -> None:
    answered, out, err = terminal(*words.split())
    assert (answered, out, terminal.opened) == (code, "", [])
    assert sentence in err


@pytest.mark.parametrize("words", ["dashboard", "attention --web", f"job show {LEG} --web"])
def test_without_a_bridge_it_says_what_to_start(service: Service, terminal: Terminal, words: str) -> None:
    service.home.bridge_ready.unlink()
    code, out, err = terminal(*words.split())
    assert (code, out, terminal.opened) == (3, "", [])
    assert "try: service daemon start" in err


def test_help_says_how_sessions_end(terminal: Terminal) -> None:
    code, out, _ = terminal("dashboard", "--help")
    assert code == 0
    assert "works once, within five minutes" in " ".join(out.split())
    assert "service bridge token --rotate" in " ".join(out.split())
