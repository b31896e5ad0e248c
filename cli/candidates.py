"""Completion candidates: nouns, verbs, options, names (`service completion`)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cli.stored_names import stored

if TYPE_CHECKING:
    from collections.abc import Mapping

Candidate = tuple[str, str]
"""The word to insert, and its description."""

_RUNTIMES = ("runtime_a", "runtime_b", "runtime_c", "shell")
_FIXED: "Mapping[str, Sequence[str]]" = {
    "verb": ("answer", "retry", "continue", "abort", "extend"),
    "member": ("daemon", "server", "worker", "bridge", "github", "commands"),
    "runtime": _RUNTIMES,
    "--runtime": _RUNTIMES,
    "--runtimes": _RUNTIMES,
    "--scope": ("read", "ask", "act"),
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
"""Commands whose name argument is new, so there is nothing to complete."""


def candidates(words: Sequence[str]) -> list[Candidate]:
    """Return the completions of the last word, which is unfinished or empty."""
    *done, begun, apart = _joined(words)
    if done[:1] == ["help"]:
        return _helped(done[1:], begun)
    command, path, arguments, waiting = _walked(done)
    option, equals, value = begun.partition("=")
    if equals and (found := _option(command, option)):
        before = "" if apart else f"{option}="
        return [(f"{before}{each}", "") for each in _values(found.opts[0], path, value)]
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


def _helped(done: Sequence[str], begun: str) -> list[Candidate]:
    """Complete pages and commands after `service help`."""
    if begun.startswith("-"):
        return [each for each in (("--help", ""), ("--json", "Print JSON.")) if each[0].startswith(begun)]
    from cli import manual

    command, _, arguments, _ = _walked(done)
    found = [] if done else [(page.name, page.says) for page in manual.pages()]
    if arguments == 0:
        found += [each for each in _below(command) if each[0] not in dict(found)]
    return [each for each in found if each[0].startswith(begun)]


def _joined(words: Sequence[str]) -> list[str]:
    """Join bash's `--repo`, `=`, `acme` to one word; the extra last item tells if the unfinished word was joined."""
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


def _walked(done: Sequence[str]) -> tuple[Any, str, int, Any]:
    """Return the command, its path, the number of its arguments so far, and the option that still needs its value."""
    from cli.main import NOUNS, command_of, root

    command, path, arguments, waiting = root(), "", 0, None
    for word in done:
        if waiting is not None:
            waiting = None
        elif word.startswith("-") and word != "-":
            found = _option(command, word)
            waiting = found if found is not None and not found.is_flag else None
        elif path == "" and word in NOUNS:
            command, path = command_of(word), word
        elif word in getattr(command, "commands", {}):
            command, path = command.commands[word], f"{path} {word}"
        else:
            arguments += 1
    return command, path, arguments, waiting


def _option(command: Any, word: str) -> Any:
    return next((each for each in command.params if word in each.opts), None)


def _options(command: Any) -> Iterator[Candidate]:
    yield "--help", ""
    for each in command.params:
        if each.param_type_name == "option" and not each.hidden:
            yield each.opts[0], each.help or ""


def _below(command: Any) -> list[Candidate]:
    from cli.main import NOUNS, Nouns

    if isinstance(command, Nouns):
        return list(NOUNS.items())
    below = getattr(command, "commands", {})
    return [(name, each.get_short_help_str(80)) for name, each in below.items() if not each.hidden]


def _values(name: str, path: str, begun: str) -> list[str]:
    if name == "name" and path in _NEW:
        return []
    keys = (f"{path} {name}", f"{path.partition(' ')[0]} {name}", name)
    kinds = next((_STORED[key] for key in keys if key in _STORED), ())
    fixed = [each for each in _FIXED.get(name, ()) if each.startswith(begun)]
    return [*fixed, *(each for kind in kinds for each in stored(kind, begun))]
