"""Comparison of a job's claimed changes with its diff (spec: result observation; ruling I4).

The highest grade is `observed`: the path was in the diff. What the claim says about the path is not proven.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

from workflows.contract.models import Entry
from workflows.model.wire import Wire

_BULLET = re.compile(r"^\s*[-*\u2022]\s+")
_LEAD_END = re.compile(r":\s|\s[-\u2013\u2014\u2192(]|$")
_LOCATION = re.compile(r":\d{1,9}(?:[:-]\d{1,9}){0,3}$|#L\d+(?:-L?\d+)?$")
_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"")
_TOKEN = re.compile(r"[^\s,;()\[\]{}<>\"`|]+")
_WITH_EXTENSION = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{0,9}$")

_NAMED_FILE = re.compile(r"[A-Z][a-z]*file|LICENSE|README|CODEOWNERS|\.[A-Za-z][\w.-]*")
"""Names of files without an extension: `Makefile`, `.gitignore`."""

MAX_CLAIM_CHARS = 10_000
MAX_PATH_CHARS = 1000


class Grade(StrEnum):
    """The degree to which the diff confirms a claim."""

    REPORTED = "reported"
    OBSERVED = "observed"


class PathMatch(StrEnum):
    """How a claimed path relates to the changed files. `unknown`: the diff is missing or incomplete."""

    EXACT = "exact"
    BASENAME = "basename"
    NONE = "none"
    UNKNOWN = "unknown"


class Touched(Wire):
    """The changed files of a diff, normalised and relative to the repository. Incomplete if there were too many to
    keep.
    """

    files: tuple[str, ...]
    complete: bool = True


class PathBinding(Wire):
    """A path that a claim names, and the touched file it refers to."""

    claimed: str
    bound: PathMatch
    file: str | None = None


class ClaimObservation(Wire):
    """The observation of one entry of `changes_made`: its position, the paths it names, its grade."""

    index: int
    paths: tuple[PathBinding, ...]
    grade: Grade


class Observation(Wire):
    """The value stored as `result_observation`."""

    captured: bool
    touched_files: tuple[str, ...] = ()
    complete: bool = True
    claims: tuple[ClaimObservation, ...] = ()
    claimed_only: tuple[str, ...] = ()
    """Claimed paths that are certainly missing from the diff."""
    unclaimed_files: tuple[str, ...] = ()
    """Files of the diff that no claim mentions."""


def observe(claims: Sequence[Entry], touched: Touched | None) -> Observation:
    """Match every claim against the diff. If the diff is unknown, no claim is confirmed or disputed."""
    files = _Files(touched)
    observed = tuple(_observe_claim(index, claim, files) for index, claim in enumerate(claims))
    bindings = [binding for claim in observed for binding in claim.paths]
    mentioned = {binding.file for binding in bindings}
    return Observation(
        captured=touched is not None,
        touched_files=tuple(sorted(files.names)),
        complete=touched is None or touched.complete,
        claims=observed,
        claimed_only=tuple(sorted({binding.claimed for binding in bindings if binding.bound is PathMatch.NONE})),
        unclaimed_files=tuple(sorted(files.names - mentioned)),
    )


def normalise(path: str) -> str | None:
    """Return the repo-relative form of a path, or None if it points outside."""
    if path.startswith("/"):
        return None
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or None


def _bare(claimed: str) -> str:
    """Strip blanks and a trailing line number from a claimed path."""
    return _LOCATION.sub("", claimed.strip()[:MAX_PATH_CHARS])


class _Files:
    """A lookup of the changed files of a diff."""

    def __init__(self, touched: Touched | None) -> None:
        self.complete = touched is not None and touched.complete
        self.names = frozenset(touched.files if touched is not None else ())
        self._by_basename = {name.rpartition("/")[2]: name for name in self.names}
        self._count = Counter(name.rpartition("/")[2] for name in self.names)

    def exact(self, claimed: str) -> str | None:
        """Return the changed file with exactly that path, ignoring line numbers."""
        if len(claimed) > MAX_PATH_CHARS:
            return None
        for candidate in (claimed.strip(), _bare(claimed)):
            path = normalise(candidate)
            if path is not None and path in self.names:
                return path
        return None

    def knows_basename(self, name: str) -> bool:
        """Return whether any changed file has that name."""
        return name in self._count

    def bind(self, claimed: str) -> PathBinding:
        """Bind a claimed path to the equal changed file; an unqualified filename also to the only changed file of that
        name.
        """
        if (file := self.exact(claimed)) is not None:
            return PathBinding(claimed=file, bound=PathMatch.EXACT, file=file)
        bare = _bare(claimed)
        shown = normalise(bare) or bare
        if not self.complete:
            return PathBinding(claimed=shown, bound=PathMatch.UNKNOWN)
        if "/" not in bare and self._count[bare] == 1:
            return PathBinding(claimed=shown, bound=PathMatch.BASENAME, file=self._by_basename[bare])
        if "/" not in bare and self._count[bare] > 1:
            return PathBinding(claimed=shown, bound=PathMatch.UNKNOWN)
        return PathBinding(claimed=shown, bound=PathMatch.NONE)


def _observe_claim(index: int, claim: Entry, files: _Files) -> ClaimObservation:
    bindings = {binding.claimed: binding for binding in map(files.bind, _named_paths(claim, files))}
    exact = bool(bindings) and all(binding.bound is PathMatch.EXACT for binding in bindings.values())
    grade = Grade.OBSERVED if exact else Grade.REPORTED
    return ClaimObservation(index=index, paths=tuple(bindings.values()), grade=grade)


def _named_paths(claim: Entry, files: _Files) -> Iterator[str]:
    """Yield the paths that a claim names: an object's `path`; in prose, everything that looks like a path or is a
    changed file.
    """
    if isinstance(claim, str):
        yield from _paths_in_prose(claim, files)
    elif isinstance(path := claim.get("path"), str) and path.strip():
        yield path
    else:
        for value in claim.values():
            for text in value if isinstance(value, list) else [value]:
                yield from _paths_in_prose(text, files) if isinstance(text, str) else ()


def _paths_in_prose(text: str, files: _Files) -> Iterator[str]:
    """Yield the paths in a claim's prose. Try the whole text, its part before the first colon or dash, and each quoted
    part as one path; then try the remaining text word by word.
    """
    text = _BULLET.sub("", text[:MAX_CLAIM_CHARS])
    lead = text[: match.start()] if (match := _LEAD_END.search(text)) else text
    named = lead.strip('`"* ')
    quoted = ["".join(found) for found in _QUOTED.findall(text)]
    for span in (text, lead, *quoted):
        if files.exact(span) is not None or _looks_like_path(span, unqualified=span in (lead, named)):
            yield span
            text = text.replace(span, " ")
    for token in _TOKEN.findall(text):
        word = token.strip("*").rstrip(".:!?…")
        if files.exact(word) is not None or files.knows_basename(word) or _looks_like_path(word, unqualified=False):
            yield word


def _looks_like_path(text: str, *, unqualified: bool) -> bool:
    """Return whether a text is certainly a path: `and/or`, `e.g.` and addresses are not."""
    text = _bare(text)
    if "://" in text or any(character.isspace() for character in text):
        return False
    if unqualified and _NAMED_FILE.fullmatch(text):
        return True
    return _WITH_EXTENSION.search(text) is not None and (unqualified or "/" in text)
