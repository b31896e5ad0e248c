"""`service completion`: completion scripts for shells, and the candidates that they ask for.

Typer's own scripts are not used. In zsh and fish they call the `service` that is first on PATH, often the system's.
They take twice as long, because they import rich for the descriptions; fish calls the program twice. In bash the
candidates lose their order.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.invocation.aliases import ALIASES, expand
from workflows.model.errors import ServiceError

app = typer.Typer(help="Print a completion script for your shell.", no_args_is_help=True, rich_markup_mode=None)
Install = Annotated[bool, typer.Option("--install", help="Write it to its usual place instead of printing it.")]


@app.command()
def bash(install: Install = False) -> None:
    """Print the script for bash; or: source <(service completion bash)."""
    _give("bash", install)


@app.command()
def zsh(install: Install = False) -> None:
    """Print the script for zsh; or, after compinit: source <(service completion zsh)."""
    _give("zsh", install)


@app.command()
def fish(install: Install = False) -> None:
    """Print the script for fish; or: service completion fish | source."""
    _give("fish", install)


@app.command(name="candidates", hidden=True)
def print_candidates(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Print the completions of the last word, one per line; the completion scripts call this."""
    from cli.drawing.output import say

    if lines := [f"{word} {what}".rstrip() for word, what in candidates(words or [])]:
        say(*lines)


def _give(shell: str, install: bool) -> None:
    from cli.drawing.output import say

    if not install:
        say(*_script(shell).rstrip("\n").split("\n"))
        return
    path, lines = _install(shell)
    say(f"wrote {path}", *(["add to your start-up file:", *(f"  {line}" for line in lines)] if lines else []))
    say("then open a new shell")


_BASH = """\
_service_completion() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%% *}")
  done < <(PROGRAM completion candidates -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -o nosort -F _service_completion service 2>/dev/null ||
  complete -o default -F _service_completion service
"""
_ZSH = """\
#compdef service
_service() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("${${line//:/\\\\:}/ /:}")
  done < <(PROGRAM completion candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then _describe -V 'service' found; else _files; fi
}
if [[ $funcstack[1] == _service ]]; then _service "$@"; else compdef _service service; fi
"""
_FISH = """\
# fish knows another program of this name, whose words are loaded and forgotten
complete -C 'service ' >/dev/null 2>&1
complete -c service -e
function __service_candidates
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    test (count $begun) -eq 0; and set begun ''
    set -l found (PROGRAM completion candidates -- $words[2..-1] $begun 2>/dev/null)
    if test (count $found) -gt 0
        string replace ' ' \\t -- $found
    else
        __fish_complete_path $begun
    end
end
complete -c service -f -k -a '(__service_candidates)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def _script(shell: str) -> str:
    """Return the shell's script. It calls this installation, even if another `service` comes first on PATH."""
    return _SCRIPTS[shell].replace("PROGRAM", shlex.quote(_program()))


def _install(shell: str) -> tuple[Path, list[str]]:
    """Write the script to its usual place, and return the path and the lines a start-up file needs, if any."""
    path, lines = _place(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_script(shell))
    except OSError as error:
        hint = f"service completion {shell} > /some/file"
        raise ServiceError(f"{path} cannot be written: {error.strerror}", hint) from None
    return path, lines


def _place(shell: str) -> tuple[Path, list[str]]:
    home = Path.home()
    if shell == "fish":
        return _folder("XDG_CONFIG_HOME", home / ".config") / "fish" / "completions" / "service.fish", []
    if shell == "zsh":
        folder = Path(os.environ.get("ZDOTDIR") or home) / ".zfunc"
        return folder / "_service", [f"fpath=({shlex.quote(str(folder))} $fpath)", "autoload -Uz compinit && compinit"]
    path = _folder("XDG_DATA_HOME", home / ".local" / "share") / "bash-completion" / "completions" / "service"
    loads_by_itself = Path("/usr/share/bash-completion/bash_completion").exists()
    return path, [] if loads_by_itself else [f"source {shlex.quote(str(path))}"]


def _folder(variable: str, usual: Path) -> Path:
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else usual


def _program() -> str:
    """Return the absolute path of this program if it was started as `service`."""
    path = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name == "service" else None
    return str(Path(path).absolute()) if path else "service"


Candidate = tuple[str, str]
"""The word to insert, and its description."""

_RUNTIMES = ("codex", "claude", "kimi", "runtime_a", "runtime_b", "runtime_c", "shell")
_BY_ACP = ("opencode", "copilot", "qwen", "kimi-acp")
_FIXED: "Mapping[str, Sequence[str]]" = {
    "verb": ("answer", "retry", "continue", "abort", "extend"),
    "member": ("daemon", "server", "worker", "bridge", "github", "commands"),
    "runtime": (*_RUNTIMES, *_BY_ACP),
    "--runtime": (*_RUNTIMES, *_BY_ACP),
    "--runtimes": _RUNTIMES,
    "--scope": ("read", "ask", "act"),
    "--session": ("fresh", "tree"),
    "--autonomy": ("auto", "read-only", "workspace-write", "danger-full-access"),
    "job list --state": (  # of trees, and of jobs
        *("queued", "running", "waiting", "ending", "blocked", "failed", "done", "cut_short"),
        *("cancelled", "succeeded", "skipped"),
    ),
    "memory list --state": ("pending", "confirmed", "retired"),
    "pipeline runs --state": (
        *("pending", "running", "awaiting_human", "succeeded", "failed", "blocked", "skipped", "cancelled"),
    ),
}
_STORED: "Mapping[str, Sequence[str]]" = {
    **dict.fromkeys(("job_id", "job", "leg", "legs", "page", "--job", "--tree"), ("jobs",)),
    **dict.fromkeys(("repo", "--repo"), ("repos",)),
    "run_id": ("runs",),
    "--agent": ("agents",),
    "--pipeline": ("pipelines",),
    "agent name": ("agents",),
    "repo name": ("repos",),
    "github name": ("repos",),
    "pipeline name": ("pipelines",),
    "pipeline show name": ("pipelines", "runs"),
}
_NEW = {"agent add", "repo add"}
"""Commands that create the name in their argument, so there is nothing to complete."""


def candidates(words: Sequence[str]) -> list[Candidate]:
    """Return the completions of the last word, which is unfinished or empty."""
    *done, begun, apart = _join(words)
    done = expand(done)
    if done[:1] == ["help"]:
        return _help_words(expand(done[1:]), begun)
    command, path, arguments, waiting = _walk(done)
    option, equals, value = begun.partition("=")
    if equals and (parameter := _option(command, option)):
        before = "" if apart else f"{option}="
        return [(f"{before}{each}", "") for each in _values(parameter.opts[0], path, value)]
    if waiting is not None:
        return [(each, "") for each in _values(waiting.opts[0], path, begun)]
    if begun.startswith("-"):
        return sorted(each for each in _options(command) if each[0].startswith(begun))
    if verbs := _below(command):
        return [each for each in verbs if not arguments and each[0].startswith(begun)]
    wanted = [each for each in command.params if each.param_type_name == "argument"]
    at = min(arguments, len(wanted) - 1)
    if at < 0 or (arguments > at and wanted[at].nargs != -1):
        return []
    return [(each, "") for each in _values(wanted[at].name, path, begun)]


def _help_words(done: Sequence[str], begun: str) -> list[Candidate]:
    """Complete the names of manual pages and commands after `service help`."""
    if begun.startswith("-"):
        return [each for each in (("--help", ""), ("--json", "Print JSON.")) if each[0].startswith(begun)]
    from cli import manual

    command, _, arguments, _ = _walk(done)
    offers = [] if done else [(page.name, page.says) for page in manual.pages()]
    if arguments == 0:
        offers += [each for each in _below(command) if each[0] not in dict(offers)]
    return [each for each in offers if each[0].startswith(begun)]


def _join(words: Sequence[str]) -> list[str]:
    """Join bash's `--repo`, `=`, `acme` to one word; a further last item says whether the unfinished word was
    joined.
    """
    joined: list[str] = []
    apart = ""
    for word in words or [""]:
        if joined and joined[-1].startswith("--") and (word == "=" or joined[-1].endswith("=")):
            joined[-1] += word
            apart = "apart"
        else:
            joined.append(word)
            apart = ""
    return [*joined, apart]


def _walk(done: Sequence[str]) -> tuple[Any, str, int, Any]:
    """Return the command that these words begin, its path, the number of its arguments so far, and the option that
    still needs a value.
    """
    from cli.main import NOUNS, command_of, root

    command, path, arguments, waiting = root(), "", 0, None
    for word in done:
        if waiting is not None:
            waiting = None
        elif word.startswith("-") and word != "-":
            option = _option(command, word)
            waiting = option if option is not None and not option.is_flag else None
        elif path == "" and word in NOUNS:
            command, path = command_of(word), word
        elif word in getattr(command, "commands", {}):
            command, path = command.commands[word], f"{path} {word}"
        else:
            arguments += 1
    return command, path, arguments, waiting


def _option(command: Any, word: str) -> Any:
    return next((parameter for parameter in command.params if word in parameter.opts), None)


def _options(command: Any) -> Iterator[Candidate]:
    yield "--help", ""
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            yield parameter.opts[0], parameter.help or ""


def _below(command: Any) -> list[Candidate]:
    from cli.main import NOUNS, Nouns

    if isinstance(command, Nouns):
        return [*NOUNS.items(), *((alias, f"short for {path}") for alias, path in ALIASES.items())]
    below = getattr(command, "commands", {})
    return [(name, each.get_short_help_str(80)) for name, each in below.items() if not each.hidden]


def _values(name: str, path: str, begun: str) -> list[str]:
    if name == "name" and path in _NEW:
        return []
    keys = (f"{path} {name}", f"{path.partition(' ')[0]} {name}", name)
    kinds = next((_STORED[key] for key in keys if key in _STORED), ())
    fixed = next((_FIXED[key] for key in keys if key in _FIXED), ())
    return [
        *(word for word in fixed if word.startswith(begun)),
        *(each for kind in kinds for each in stored_names(kind, begun)),
    ]


_QUERIES: Mapping[str, str] = {
    "agents": "SELECT name FROM agents WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT 200",
    "repos": "SELECT name FROM repos WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT 200",
    "pipelines": "SELECT name FROM pipelines WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT 200",
    "jobs": "SELECT job_id FROM jobs WHERE substr(job_id, 1, ?) = ? ORDER BY queued_at DESC LIMIT 30",
    "runs": "SELECT run_id FROM pipeline_runs WHERE substr(run_id, 1, ?) = ? ORDER BY rowid DESC LIMIT 30",
}
_SECONDS = 0.3
_NAME = re.compile(r"[\w@/+.,-]+", re.ASCII)
"""Names that need no quoting in a shell; others are not offered."""


def stored_names(kind: str, begun: str) -> list[str]:
    """Return the stored names of this kind with this prefix, newest jobs and runs first. Return none if the store can't
    be read.
    """
    from activities.settings.home import Home
    from workflows.model.errors import ServiceError

    home = Home.locate()
    if not home.store.is_file():
        return []
    import sqlite3

    try:
        home.trust()
        with closing(sqlite3.connect(f"{home.store.as_uri()}?mode=ro", uri=True, timeout=_SECONDS)) as store:
            names = [str(name) for (name,) in store.execute(_QUERIES[kind], (len(begun), begun))]
    except (sqlite3.Error, OSError, ServiceError):
        return []
    return [name for name in names if _NAME.fullmatch(name)]
