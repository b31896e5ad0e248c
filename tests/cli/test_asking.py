"""Questions on a terminal: each answer is one that a person meant, and no answer locks the command up."""

import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.asking import questions
from cli.asking.questions import TypedAnswer, ask
from tests.bridge import seeds
from tests.cli import slow
from tests.cli.seat import CTRL_C, seated
from tests.installed import Machine
from workflows.model.rows import QuestionRecord

pytestmark = pytest.mark.ruling("F4", "F6")
VERBS = ("retry", "continue", "abort", "extend")
TIMES = ("how much longer, such as 2h or 3 days",)
Typing = Callable[[Sequence[str]], list[str]]


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Typing:
    """Return a function that has these answers typed, and returns the list of the questions to come."""

    def begin(answers: Sequence[str]) -> list[str]:
        left, asked = list(answers), list[str]()

        def answer(text: str, *_: object) -> str:
            asked.append(text)
            return left.pop(0)

        monkeypatch.setattr(questions, "ask_text", answer)
        return asked

    return begin


@pytest.mark.parametrize(
    ("answers", "answer"),
    [
        (["9", "0", "", "retyr", "1", "with care"], TypedAnswer("retry", "with care")),
        (["abort", ""], TypedAnswer("abort", "")),
        (["4", "soon", "", "0s", "90000 days", "2 days"], TypedAnswer("extend", "2d")),
    ],
)
def test_what_is_none_of_the_verbs_or_no_time_is_asked_again(
    typing: Typing, capsys: pytest.CaptureFixture[str], answers: list[str], answer: TypedAnswer
) -> None:
    asked = typing(answers)
    assert ask(seeds.round_(kind="failure", questions=(), verbs=VERBS)) == answer
    assert len(asked) == len(answers)
    errors = capsys.readouterr().err
    assert ("type a number from 1 to 4" in errors) is (answers[0] == "9")
    assert ("the duration must be positive" in errors) is ("0s" in answers)


def test_a_number_without_a_choice_and_a_line_that_was_cut_are_asked_again(
    typing: Typing, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = typing(["7", "x" * questions.LONGEST_LINE, "2"])
    question = QuestionRecord(id="color", prompt="which?", job_id=seeds.ROOT, choices=("red", "blue"))
    answer = ask(seeds.round_(questions=(question,)))
    assert answer is not None
    assert (answer.text, asked) == ("color: blue", ["answer"] * 3)
    errors = capsys.readouterr().err
    assert "there is no choice 7: type a number from 1 to 2" in errors
    assert "a terminal takes 4,095 bytes in one line" in errors


@pytest.fixture
def shop(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a repository of a machine with one agent program."""
    path = tmp_path / "shop"
    commit = "git init -q . && git -c user.name=t -c user.email=t@x.invalid commit -q --allow-empty -m x"
    path.mkdir()
    subprocess.run(["sh", "-c", commit], cwd=path, check=True)
    monkeypatch.chdir(path)
    Machine(tmp_path, monkeypatch).install("codex")
    return path


def test_what_is_typed_during_a_wait_or_below_an_answer_answers_nothing(shop: Path) -> None:
    with seated(("init",), before=partial(slow.waits, "bridge.operations.health.runtimes:check_runtimes")) as seat:
        seat.until_shown("looking at the agents' programs")
        seat.press("evil/name\ny\n")
        slow.go()
        seat.until_shown("its name here, OWNER/NAME [local/shop]")
        seat.press("acme/shop\ny\ny\ny\n")
        seat.until_shown("register it?")
        seat.press("n\n")
        assert seat.end() == 1
        assert seat.is_as_before()
    text = "\n".join(seat.screen.everything)
    assert "acme/shop: registered" in text
    assert "nothing was changed" in text


@pytest.mark.parametrize("paste", ["\n" * 5, "x" * 3000 + "\n", "z\n" * 1000])
@pytest.mark.parametrize("leaves", [CTRL_C, "\x04"])
def test_no_answer_locks_a_resume_up(home: Home, paste: str, leaves: str) -> None:
    service = Service(home)
    seeds.write(service, seeds.task(), seeds.job(), seeds.round_(kind="failure", questions=(), verbs=VERBS))
    service.store.dispose()
    with seated(("resume", seeds.ROOT)) as seat:
        seat.until_shown("what now")
        seat.press(paste)
        seat.until(lambda _: "type a number from 1 to 4" in seat.written)
        while seat.process.is_alive():  # a key that meets the rest of the paste is dropped with it
            seat.press(leaves)
            seat.look()
            time.sleep(0.05)
        assert seat.end() in (1, 130)
        assert seat.is_as_before()
    assert "Traceback" not in seat.written
