"""Choice and use of the pager."""

from pathlib import Path

import pytest

from cli.drawing import output, pager
from cli.drawing.screens import Screen

pytestmark = pytest.mark.ruling("N6")


@pytest.mark.parametrize(
    ("wanted", "command"),
    [("cat", []), ("", []), ("sh -c 'x'", ["sh", "-c", "x"]), ("no-such-program", []), ("'", [])],
)
def test_the_pager_is_the_person_s(monkeypatch: pytest.MonkeyPatch, wanted: str, command: list[str]) -> None:
    monkeypatch.setenv("PAGER", wanted)
    assert pager.command() == command


@pytest.mark.parametrize(("own", "options"), [(None, "-R FX"), ("-M", "-R -M"), ("", "-R ")])
def test_less_shows_colours_whatever_else_it_is_told(own: str | None, options: str) -> None:
    environment = {} if own is None else {"LESS": own}
    assert pager.environment_of(environment)["LESS"] == options


def test_what_fits_with_the_prompt_is_not_tall() -> None:
    screen = Screen(20, height=5)
    assert not pager.is_tall("x\n" * 4, screen)
    assert pager.is_tall("x\n" * 5, screen)
    assert pager.is_tall("x" * 81 + "\n", screen), "a line that the terminal folds counts as it stands there"
    assert not pager.is_tall(f"\x1b[1;31m{'x' * 20}\x1b[0m\n" * 4, screen), "what is not seen does not"
    assert pager.is_tall("日本" * 6 + "\n" + "日本" * 12 + "\n", screen)


def test_no_link_goes_through_a_pager() -> None:
    assert pager.for_pager("\x1b]8;;http://x/\x1b\\\x1b[1mjob\x1b[0m\x1b]8;;\x1b\\\n") == "\x1b[1mjob\x1b[0m\n"


def test_a_pager_that_cannot_start_leaves_the_text_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "mypager"
    broken.write_bytes(b"\x7fELF of another machine")
    broken.chmod(0o755)
    monkeypatch.setenv("PAGER", str(broken))
    output.run_pager(["one\n", "two\n"])
    screen, errors = capfd.readouterr()
    assert screen == "one\ntwo\n"
    assert f"The pager {broken} does not start: Exec format error. Set PAGER" in errors
