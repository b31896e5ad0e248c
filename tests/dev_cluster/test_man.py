"""Man pages: every command with every option, in troff that is set without a warning."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from cli import commands
from cli.main import NOUNS
from tests.written import ROOT


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import the script, which is not part of a package, and write the pages."""
    spec = importlib.util.spec_from_file_location("man", ROOT / "dev-cluster/man.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = tmp_path_factory.mktemp("man")
    script.main(folder)
    return folder / "man1"


def test_each_noun_has_a_page_with_all_its_commands_and_options(written: Path) -> None:
    assert {path.stem for path in written.iterdir()} == {"service", *(f"service-{noun}" for noun in NOUNS)}
    pages = {path.stem: path.read_text().replace("\\-", "-") for path in written.iterdir()}
    assert all(f"service-{noun} (1)" in pages["service"] for noun in NOUNS)
    for command in commands.every():
        _, _, section = pages[f"service-{command.command.split()[0]}"].partition(f"\n.SS service {command.command}\n")
        section = section.partition("\n.SS ")[0]
        assert f"\n{command.example}\n" in section
        assert all(f"\\fB{option.name}\\fR" in section for option in command.options), command.command


def test_text_that_troff_would_read_as_a_request_is_escaped(written: Path) -> None:
    requests = (".TH", ".SH", ".SS", ".TP", ".PP", ".B ", ".BR ", ".br", ".in", ".EX", ".EE")
    for path in written.iterdir():
        lines = path.read_text().splitlines()
        assert [line for line in lines if line.startswith((".", "'")) and not line.startswith(requests)] == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_it_is_set_without_a_warning(written: Path) -> None:
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", *written.iterdir()], capture_output=True, check=True)
    assert done.stderr == b""
