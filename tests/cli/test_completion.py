"""Completions in a shell: nouns, verbs, options, stored names; in real shells (ruling K6)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from activities.runtimes.known_runtimes import BY_ACP, PROGRAMS, RUNTIMES
from activities.settings.home import Home
from bridge.machine.token_scopes import TokenScope
from bridge.operations.service import Service
from cli.completion import candidates
from cli.invocation.aliases import ALIASES
from cli.main import NOUNS, main
from tests.bridge import seeds
from workflows.contract.models import AutonomyPolicy
from workflows.model.states import JobState
from workflows.model.workers import SessionScope
from workflows.pipeline.plan import RunState
from workflows.policy.answers import Verb
from workflows.policy.memory import MemoryState
from workflows.policy.tree_states import TreeState

pytestmark = pytest.mark.ruling("K6")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def full(home: Home, tmp_path: Path) -> Home:
    """Seed an agent, a repository, and two jobs."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    assert main(["repo", "add", "acme/shop", str(tmp_path / "shop")]) == 0
    assert main(["agent", "add", "scout", "--runtime", "shell", "--command", "cat"]) == 0
    seeds.write(Service(home), seeds.task(), seeds.job(queued_at=1.0), seeds.job(f"{seeds.ROOT}.1", queued_at=2.0))
    return home


def offered(*words: str) -> list[str]:
    return [word for word, _ in candidates(words)]


OFFERED: tuple[tuple[list[str], list[str]], ...] = (
    ([""], [*NOUNS, *ALIASES]),
    (["jo"], ["job"]),
    (["job", "sh"], ["show"]),
    (["bridge", "token", ""], ["add", "list", "remove"]),
    (["job", "tree", "--w"], ["--watch", "--web"]),
    (["agent", "show", ""], ["scout"]),
    (["agent", "add", ""], []),
    (["agent", "ask", "sc"], ["scout"]),
    (["agent", "ask", "scout", "hi", "--repo", ""], ["acme/shop"]),
    (["agent", "ask", "scout", "hi", "--repo=ac"], ["--repo=acme/shop"]),
    (["agent", "ask", "scout", "hi", "--repo", "=", "ac"], ["acme/shop"]),
    (["agent", "ask", "scout", "hi", "--repo", "="], ["acme/shop"]),
    (["agent", "add", "x", "--runtime", "sh"], ["shell"]),
    (["ask", "sc"], ["scout"]),
    (["tree", "--w"], ["--watch", "--web"]),
    (["sta"], ["start", "status"]),
    (["job", "list", "--state", "s"], ["succeeded", "skipped"]),
    (["repo", "remove", "a"], ["acme/shop"]),
    (["job", "show", ""], [f"{seeds.ROOT}.1", seeds.ROOT]),
    (["job", "show", "--json", f"{seeds.ROOT}."], [f"{seeds.ROOT}.1"]),
    (["job", "show", seeds.ROOT, ""], []),
    (["resume", seeds.ROOT, "a"], ["answer", "abort"]),
    (["result", "check", ""], []),
    (["nonsense", ""], []),
    (["job", "nonsense", ""], []),
)


def test_what_is_offered(full: Home) -> None:
    for words, completions in OFFERED:
        assert offered(*words) == completions, words


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("job list --state", dict.fromkeys((*TreeState, *JobState))),
        ("memory list --state", MemoryState),
        ("pipeline runs --state", RunState),
        ("agent add x --session", SessionScope),
        ("agent add x --autonomy", AutonomyPolicy),
        ("bridge token add x --scope", TokenScope),
        ("agent add x --runtime", (*PROGRAMS, *RUNTIMES, *BY_ACP)),
        ("resume job-0123456789ab", Verb),
    ],
)
def test_every_value_of_an_option_is_offered(home: Home, option: str, values: Iterable[str]) -> None:
    assert offered(*option.split(), "") == list(values)


def test_nothing_is_made_where_there_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE_HOME", str(tmp_path / "none"))
    assert main(["completion", "candidates", "--", "job", "show", ""]) == 0
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "none").exists()


def test_a_store_that_cannot_be_read_is_silent(home: Home) -> None:
    home.store.write_bytes(b"no database at all" * 99)
    assert offered("job", "show", "") == []


def test_a_name_that_a_shell_would_read_as_more_is_not_offered(full: Home) -> None:
    from sqlalchemy import update

    from activities.store import schema

    with Service(full).store.begin() as connection:
        connection.execute(update(schema.agents).values(name="$(touch x)"))
    assert offered("agent", "show", "") == []


def test_little_is_imported() -> None:
    program = (
        "import sys; from cli.main import main; code = main(['completion', 'candidates', '--', 'job', 'show', '']);"
        "assert not {'sqlalchemy', 'temporalio', 'pydantic'} & set(sys.modules), 'slow'; sys.exit(code)"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


class TestInstalled:
    @pytest.mark.parametrize(
        ("shell", "place"),
        [
            ("bash", ".local/share/bash-completion/completions/service"),
            ("zsh", ".zfunc/_service"),
            ("fish", ".config/fish/completions/service.fish"),
        ],
    )
    def test_it_says_where_and_what_to_add(
        self,
        home: Home,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        shell: str,
        place: str,
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
            monkeypatch.delenv(name, raising=False)
        assert main(["completion", shell, "--install"]) == 0
        output = capsys.readouterr().out
        assert output.startswith(f"wrote {tmp_path / place}\n")
        assert ("compinit" in output) == (shell == "zsh")
        assert main(["completion", shell]) == 0
        assert (tmp_path / place).read_text() == capsys.readouterr().out

    def test_a_place_that_cannot_be_written(
        self, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", "/proc/none")
        assert main(["completion", "fish", "--install"]) == 1
        assert "try: service completion fish > /some/file" in capsys.readouterr().err


def program(folder: Path) -> Path:
    """Install `service` in a folder of its own."""
    path = folder / "bin" / "service"
    path.parent.mkdir()
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom cli.main import run\nrun()\n"
    )
    path.chmod(0o755)
    return path


BASH = """
source <({program} completion bash)
COMP_WORDS=({words}) COMP_CWORD={last}
_service_completion
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("service jo", ["job"]),
        ("service job show ''", [f"{seeds.ROOT}.1", seeds.ROOT]),
        ("service agent ask scout hi --repo ''", ["acme/shop"]),
        ("service job tree --wa", ["--watch"]),
    ],
)
def test_in_bash(full: Home, tmp_path: Path, words: str, completions: list[str]) -> None:
    typed = BASH.format(program=program(tmp_path), words=words, last=len(words.split()) - 1)
    done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True)
    assert (done.stdout.split("\n")[:-1], done.stderr) == (completions, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_in_fish(full: Home, tmp_path: Path) -> None:
    typed = f"{program(tmp_path)} completion fish | source; complete -C 'service agent show '"
    done = subprocess.run(["fish", "-c", typed], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["scout"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_in_zsh(full: Home, tmp_path: Path) -> None:
    typed = (
        f"_describe() {{ print -l -- $found }}; compdef() {{ : }}; source <({program(tmp_path)} completion zsh);"
        "words=(service agent show ''); CURRENT=4; _service"
    )
    done = subprocess.run(["zsh", "-fc", typed], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["scout"]
