"""Suggestions for mistyped commands, options and names: the command that was probably meant, with all its words."""

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

from workflows.model import ids

_LONGEST = 200
"""Longest command that a suggestion repeats with its arguments."""
_CLOSE = 0.65
"""Least similarity of words that are suggested."""
_AS_GOOD = 0.1
"""How much less similar than the best suggestion another one may be."""
_MOST = 3
FREE_TEXTS = ("CONTENT", "GOAL", "MESSAGE", "QUERY", "TEXT")
"""Arguments that are sentences."""
_ELSEWHERE = 0.8
"""Factor for the similarity of a verb from another group."""
_PART, _SHORTEST_PART = 0.8, 4
"""The similarity of a word and its part, such as `review-panel` and `panel`, and the least length of such a part."""
_VERBS = {"add": "create new", "kill": "abort", "list": "ls", "remove": "delete rm", "show": "describe get info view"}
_SAME_MEANING = {word: verb for verb, words in _VERBS.items() for word in words.split()}
"""Maps verbs of other tools to this program's."""
_WANTED = {
    "agent ask": ("chat", "job add", "job create", "job new", "job start", "new", "prompt", "task"),
    "agent implement": ("do", "fix", "run"),
    "agent list": ("agents", "team"),
    "agent review": ("review",),
    "attention": ("inbox", "questions", "todo"),
    "config show": ("config get", "limits", "model", "models", "settings"),
    "dashboard": ("browser", "gui", "open", "ui", "web"),
    "daemon start": ("serve", "up"),
    "daemon status": ("info",),
    "daemon stop": ("down", "exit", "quit"),
    "doctor": ("check", "cluster check", "cluster status", "diagnose", "health", "test"),
    "gc": ("clean", "cleanup", "prune"),
    "host list": ("hosts", "machines", "nodes", "workers"),
    "init": ("begin", "configure", "setup"),
    "job branches": ("branch", "branches"),
    "job events": ("events", "history"),
    "job kill": (
        "abort",
        "cancel",
        "job cancel",
        "job delete",
        "job remove",
        "job stop",
        "kill",
        "tree kill",
        "tree stop",
    ),
    "job list": ("jobs", "list", "ls", "ps", "queue", "task list", "tasks", "tree list", "trees"),
    "job log": ("log", "transcript"),
    "job merge": ("accept", "apply", "checkout"),
    "job show": ("job info", "job status"),
    "memory list": ("memories", "remember"),
    "memory retire": ("memory remove",),
    "pipeline list": ("pipelines", "schedules"),
    "pipeline run": ("pipeline start", "run"),
    "repo add": ("clone",),
    "repo list": ("repo show", "repos", "repositories"),
    "resume": ("answer", "approve", "continue", "reject", "reply"),
    "runtime list": ("programs", "runtimes"),
    "spend": ("budget", "cost", "costs", "usage"),
    "--version": ("version",),
}
_MEANT = {typed: [path for path in _WANTED if typed in _WANTED[path]] for ways in _WANTED.values() for typed in ways}
"""Maps commands that don't exist to those that do the same."""
_OF_A_JOB = {
    "job events": ("events", "history"),
    "job kill": ("abort", "cancel", "delete", "end", "kill", "remove", "rm", "stop"),
    "job log": ("log", "logs", "output", "transcript"),
    "job show": ("describe", "get", "info", "job", "open", "show", "status", "task", "view"),
    "job review": ("review",),
    "job tree": ("follow", "tree", "wait", "watch"),
}
_MEANT_OF_A_JOB = {typed: path for path, ways in _OF_A_JOB.items() for typed in ways}
"""What a verb means in front of a job's id."""
_ADVICE = {
    "login": ("the service has no login: each agent's program keeps its own", ("service runtime check",)),
    "pause": (
        "a task can't be paused by hand, only ended",
        ("service attention", "service job kill JOB"),
    ),
    "undo": (
        "there is no undo: work stays on its own branches until you merge it, and can be dropped there",
        ("service job branches JOB", "service job drop JOB"),
    ),
    "update": (
        "no command updates the service: stop it, pull in its clone, set it up again, start it",
        ("service daemon stop", "git pull", "./dev-cluster/setup", "service daemon start"),
    ),
    "restart": (
        "no command restarts the daemon: stop it, then start it; tasks go on where they were",
        ("service daemon stop", "service daemon start"),
    ),
    "doctor --fix": (
        "`service doctor` changes nothing: below each finding is the command that repairs it",
        ("service doctor",),
    ),
    "config set": (
        "settings are kept in a file; these commands say where it is, and what can be set",
        ("service config show", "service help settings"),
    ),
    "token": (
        "each agent's program keeps its own key; the tokens here are for programs that call the HTTP interface",
        ("service bridge token list",),
    ),
}
_SAME_ADVICE = {
    "config edit": "config set",
    "config write": "config set",
    "daemon restart": "restart",
    "key": "token",
    "logout": "login",
    "revert": "undo",
    "suspend": "pause",
    "tokens": "token",
    "upgrade": "update",
    "whoami": "login",
}


def advice(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return a sentence and the commands for words that no single command stands for; empty for all others."""
    known = (_ADVICE.get(_SAME_ADVICE.get(typed, typed)) for typed in (" ".join(words[:2]), *words[:1]))
    return next(filter(None, known), ("", ()))


_OPTIONS = {"-n": "--limit", "-v": "--version", "-V": "--version"}
"""Short options of other tools, and the ones that they stand for here."""
_OF_A_TEXT = ("-m", "-p", "--message", "--prompt", "--text", "--goal")
"""Options of other tools for a text that is an argument here."""
_NUMBER = re.compile(r"[^\d]*(\d+(?:\.\d+)?)[^\d]*")


def with_known_option(
    words: Sequence[str], option: str, known: Collection[str], arguments: Iterable[str | None]
) -> str:
    """Return the command with the option or argument that another tool's option stands for; "" if it is unknown."""
    if option in _OF_A_TEXT and not {*FREE_TEXTS}.isdisjoint(arguments):
        return command(*(word for word in words if word != option))
    meant = _OPTIONS.get(option, "")
    return correct(words, option, meant) if meant in known else ""


def with_number(words: Sequence[str], wrong: str) -> str:
    """Return the command with only the number of a value such as `$5`, `#7` or the address of a pull request."""
    number = _NUMBER.fullmatch(wrong)
    return correct(words, wrong, number[1]) if number else ""


def of_a_job(words: Sequence[str]) -> str:
    """Return the command that a job's id was meant for, by the word before it; "" if that is unclear."""
    place = next((number for number, word in enumerate(words) if ids.find(word)), None)
    if place is None:
        return ""
    path = _MEANT_OF_A_JOB.get(words[place - 1]) if place else "job show"
    return command(*path.split(), ids.find(words[place]), *words[place + 1 :]) if path else ""


def near_commands(words: Sequence[str], group: int, known: Iterable[str]) -> list[tuple[str, str]]:
    """Return the commands that were probably meant, best first: each alone, and with all typed words.

    The first `group` words are an existing group; the next word is unknown in it.
    """
    plain = list(takewhile(lambda word: not word.startswith("-"), words))
    if for_job := of_a_job(words):
        return [(" ".join(for_job.split()[:3]), for_job)]
    for count in (group + 2, group + 1):
        if paths := _MEANT.get(" ".join(plain[:count])):
            return [_suggestion(path, words[count:]) for path in paths]
    scored = [(*_similar(plain, group, path.split()), path) for path in dict.fromkeys(known)]
    least = max(_CLOSE, max(score for score, _, _ in scored) - _AS_GOOD)
    best = sorted(
        (candidate for candidate in scored if candidate[0] >= least),
        key=lambda candidate: (-candidate[0], "job " not in candidate[2]),
    )
    wholes = [candidate for candidate in best if not any(other.startswith(f"{candidate[2]} ") for _, _, other in best)]
    return [_suggestion(path, words[count:]) for _, count, path in wholes[:_MOST]]


def _suggestion(path: str, rest: Sequence[str]) -> tuple[str, str]:
    return f"service {path}", command(*path.split(), *rest) or f"service {path} --help"


def _similar(plain: Sequence[str], group: int, path: Sequence[str]) -> tuple[float, int]:
    """Return how similar a command is to the typed words, and how many of them it replaces."""
    wrong = plain[group]
    scores = [(0.0, 0)]
    if group < len(path) <= len(plain):
        alike = [_ratio(typed, word) for typed, word in zip(plain, path, strict=False)]
        scores.append((sum(alike) / len(alike) if min(alike) >= _CLOSE else 0.0, len(path)))
    if len(path) > 1 or group:
        verb = 1.0 if _SAME_MEANING.get(wrong, wrong) == path[-1] else _ratio(wrong, path[-1])
        scores.append((verb * (1.0 if path[:-1] == plain[:group] else _ELSEWHERE), group + 1))
    return max(scores)


def _ratio(typed: str, word: str) -> float:
    if typed != word and len(typed) >= _SHORTEST_PART and typed in word.split("-"):
        return _PART
    return SequenceMatcher(None, typed, word).ratio()


def split(words: Sequence[str], flags: Collection[str]) -> tuple[list[str], list[str]]:
    """Return a command's arguments and its options, the latter with their values."""
    arguments, options, takes_value = list[str](), list[str](), False
    for word in words:
        is_option = takes_value or (word.startswith("-") and word != "-")
        (options if is_option else arguments).append(word)
        takes_value = is_option and not takes_value and "=" not in word and word not in flags
    return arguments, options


def correct(words: Sequence[str], wrong: str, right: str) -> str:
    """Return the typed command with a word replaced, also inside `--option=value`; "" if that is not possible."""
    as_value = [word.partition("=") for word in words]
    replaced = [
        right
        if word == wrong
        else f"{right}={value}"
        if name == wrong
        else f"{name}={right}"
        if value == wrong
        else word
        for word, (name, _, value) in zip(words, as_value, strict=True)
    ]
    return "" if replaced == list(words) else command(*replaced)


def command(*words: str) -> str:
    """Return the command line; "" if it is too long or has several lines."""
    command = shlex.join(("service", *words))
    return command if len(command) <= _LONGEST and "\n" not in command else ""
