"""Suggestions for mistyped commands, options and names: the command that was probably meant, with all its words."""

import shlex
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

_LONGEST = 200
"""The length of a command that is repeated in a suggestion; a longer one is typed again."""
_CLOSE = 0.65
"""The similarity of words that count as close."""
_AS_GOOD = 0.1
"""How much less similar another suggestion may be than the best one."""
_MOST = 3
_ELSEWHERE = 0.8
"""How much less similar a verb of another group is."""
_PART, _SHORTEST_PART = 0.8, 4
"""The similarity of `panel` and `review-panel`, and the length of words that count as such parts."""
_VERBS = {"add": "create new", "kill": "abort", "list": "ls", "remove": "delete rm", "show": "describe get view"}
_SAME_MEANING = {word: verb for verb, words in _VERBS.items() for word in words.split()}
"""Words of other tools, and the verb here."""
_WANTED = {
    "attention": ("inbox", "todo"),
    "config show": ("settings",),
    "daemon start": ("daemon restart", "restart", "up"),
    "daemon stop": ("down",),
    "job kill": ("job cancel", "job stop", "tree kill", "tree stop"),
    "job list": ("jobs", "ls", "ps"),
    "job merge": ("checkout",),
    "memory retire": ("memory remove",),
    "repo list": ("repo show",),
    "resume": ("answer", "approve", "reply"),
    "runtime check": ("login",),
    "spend": ("cost", "costs"),
    "--version": ("version",),
}
_MEANT = {typed: path for path, ways in _WANTED.items() for typed in ways}
"""Commands that do not exist, and those that do it."""


def near_commands(words: Sequence[str], group: int, known: Iterable[str]) -> list[tuple[str, str]]:
    """Return the commands that were probably meant, best first, and each with all the typed words behind it.

    The first `group` words are a command's group, and the next one is not in it.
    """
    plain = list(takewhile(lambda word: not word.startswith("-"), words))
    for count in (group + 2, group + 1):
        if path := _MEANT.get(" ".join(plain[:count])):
            return [_suggestion(path, words[count:])]
    scored = [(*_similar(plain, group, path.split()), path) for path in dict.fromkeys(known)]
    least = max(_CLOSE, max(score for score, _, _ in scored) - _AS_GOOD)
    best = sorted(
        (candidate for candidate in scored if candidate[0] >= least),
        key=lambda candidate: (-candidate[0], "job " not in candidate[2]),
    )
    wholes = [candidate for candidate in best if not any(other.startswith(f"{candidate[2]} ") for _, _, other in best)]
    return [_suggestion(path, words[count:]) for _, count, path in wholes[:_MOST]]


def _suggestion(path: str, rest: Sequence[str]) -> tuple[str, str]:
    return f"service {path}", _command(*path.split(), *rest) or f"service {path} --help"


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


def correct(words: Sequence[str], wrong: str, right: str) -> str:
    """Return the typed command with a word replaced, as itself or as an option's value; "" if that is not possible."""
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
    return "" if replaced == list(words) else _command(*replaced)


def _command(*words: str) -> str:
    """Return the command as it is typed; without its arguments if they are long."""
    command = shlex.join(("service", *words))
    return command if len(command) <= _LONGEST and "\n" not in command else ""
