"""Every pattern of the product takes time in proportion to its text: agents, people and programs write the texts."""

import ast
import functools
import importlib
import inspect
import math
import pkgutil
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from tests.hostile_texts import hostile
from workflows.secrets import tokens

pytestmark = pytest.mark.ruling("N7")

PACKAGES = ("activities", "bridge", "cli", "workflows")
FUNCTIONS = ("compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")
FEW, MANY = 16_000, 32_000
QUICK = 0.006
"""Seconds for `FEW` characters that need no second look; 128 million steps of a quadratic pattern take longer."""

GROWTH = 2.8
"""The most that twice the text may cost: 2 for a linear pattern, 4 for a quadratic one, a machine's noise between."""

SLOWEST = 8e-6
"""Seconds that a pattern may take per character of the worst text."""

LONGEST = 1.0
"""Seconds after which a search is ended."""

TRIES = 12

SLOW = 3
"""Texts of a pattern of which twice as much is tried."""

OWN_TEXT = {"bridge.http.dashboard.web_ui._INLINE": "reads pages of the embedded server's web UI"}
"""Patterns that read no foreign text."""


@functools.cache
def _modules() -> tuple[tuple[ModuleType, ast.Module], ...]:
    return tuple(_loaded())


def _loaded() -> Iterator[tuple[ModuleType, ast.Module]]:
    for root in PACKAGES:
        package = importlib.import_module(root)
        for info in pkgutil.walk_packages(package.__path__, f"{root}."):
            if not info.name.endswith("__main__") and "migrations" not in info.name:
                module = importlib.import_module(info.name)
                assert module.__file__
                with open(module.__file__, encoding="utf-8") as file:
                    yield module, ast.parse(file.read())


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    match value:
        case re.Pattern():
            yield value
        case tuple() | list() | set() | frozenset():
            for item in value:
                yield from _patterns_in(item)
        case Mapping():
            for item in (*value.keys(), *value.values()):
                yield from _patterns_in(item)
        case _:
            pass


def _is_late(value: object) -> bool:
    """Return whether a cached function without parameters compiles patterns on first use."""
    if not isinstance(value, functools._lru_cache_wrapper):
        return False
    function = inspect.signature(value)
    return not function.parameters and "re.Pattern" in str(function.return_annotation)


Names = dict[re.Pattern[Any], str]
Uses = dict[re.Pattern[Any], set[str]]


def _collected() -> tuple[Names, Uses]:
    """Return all patterns of the product with their names, and the methods by which each is used."""
    names: Names = {}
    uses: Uses = defaultdict(set)
    for module, tree in _modules():
        for name, value in vars(module).items():
            for pattern in _patterns_in(value() if _is_late(value) else value):
                names.setdefault(pattern, f"{module.__name__}.{name}")
                if not isinstance(value, re.Pattern):
                    uses[pattern].add("finditer")
        for pattern, method in _uses_in(module, tree):
            names.setdefault(pattern, f"{module.__name__}: {pattern.pattern!r:.60}")
            uses[pattern].add(method)
    for prefix, body in tokens._prefixes():
        pattern = tokens._pattern(body)
        names.setdefault(pattern, f"{tokens.__name__}: {prefix}")
        uses[pattern].add("match")
    return names, uses


def _uses_in(module: ModuleType, tree: ast.Module) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Yield what is called on patterns; one that is handed on may be used in any way."""
    called: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            called[node.value] = node.attr
        value = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value = getattr(module, node.id, None)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            value = getattr(getattr(module, node.value.id, None), node.attr, None)
        if isinstance(value, re.Pattern):
            yield value, called.get(node, "finditer")  # `ast.walk` visits a node before its children
        if isinstance(node, ast.Call) and _compiles(node.func):
            given = node.args[0]
            text = getattr(module, given.id, None) if isinstance(given, ast.Name) else getattr(given, "value", None)
            if isinstance(text, str) and isinstance(node.func, ast.Attribute) and node.func.attr != "compile":
                yield re.compile(text), node.func.attr


def _run(pattern: re.Pattern[Any], method: str) -> Callable[[Any], object]:
    if method in ("match", "fullmatch"):
        return getattr(pattern, method)  # type: ignore[no-any-return]
    return lambda text: sum(1 for _ in pattern.finditer(text))


def _took(run: Callable[[Any], object], text: str | bytes) -> float:
    """Return the processor time of a search, infinite if it was ended: `re` looks at signals as it backtracks."""
    begun = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        run(text)
    except _TooLongError:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.thread_time() - begun


class _TooLongError(Exception):
    pass


@pytest.fixture(autouse=True)
def _ends_long_searches() -> Iterator[None]:
    def end(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGVTALRM, end)
    yield
    signal.signal(signal.SIGVTALRM, before)


def _sized(pattern: re.Pattern[Any], size: int) -> list[str | bytes]:
    texts = hostile(pattern, size)
    return [text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace") for text in texts]


def _faults(name: str, pattern: re.Pattern[Any], method: str) -> Iterator[str]:
    """Yield those of the slowest texts with which the pattern takes too long; most patterns are quick with all."""
    run = _run(pattern, method)
    texts = _sized(pattern, FEW)
    slow = sorted(((took, at) for at, text in enumerate(texts) if (took := _took(run, text)) > QUICK), reverse=True)
    for few, at in slow[:SLOW]:
        if fault := _growth(run, few, texts[at], pattern, at):
            yield f"{name}.{method}: {fault} with {texts[at][:60]!r}"


def _growth(run: Callable[[Any], object], few: float, text: str | bytes, pattern: re.Pattern[Any], at: int) -> str:
    """Return what is wrong with the time for twice the text; other programs may disturb all measures but the best."""
    twice, many = _sized(pattern, MANY)[at], math.inf
    for attempt in range(TRIES):
        few = min(few, _took(run, text))
        if few < QUICK:
            return ""
        if math.isinf(few):
            return f"more than {LONGEST:.1f} s for {FEW} characters"
        many = min(many, _took(run, twice))
        if many < GROWTH * few and few < SLOWEST * FEW:
            return ""
        if attempt >= 2 and many > 3.2 * few:
            break
    return f"{few:.3f} s for {FEW} characters, {many / few:.1f} times as much for twice as many"


def test_every_pattern_is_linear_in_its_worst_texts() -> None:
    names, uses = _collected()
    assert len(names) > 350
    faults = [
        fault
        for pattern, name in names.items()
        if name not in OWN_TEXT
        for method in sorted({m if m in ("match", "fullmatch") else "finditer" for m in uses[pattern] or {"finditer"}})
        for fault in _faults(name, pattern, method)
    ]
    assert faults == []


def test_every_pattern_is_a_constant_of_its_module() -> None:
    """The test above sees constants only; a function may compile one if it is cached."""
    inline: set[str] = set()
    for module, tree in _modules():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            cached = any("cache" in ast.unparse(decorator) for decorator in function.decorator_list)
            inline |= {
                f"{module.__name__}:{node.lineno} {ast.unparse(node)[:60]}"
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and _compiles(node.func) and not cached and not _is_constant(node)
            }
    assert inline == set()


def _is_constant(call: ast.Call) -> bool:
    """Return whether a function of `re` gets a constant or its name, which the test above has seen."""
    given = call.args[0]
    return isinstance(given, ast.Constant) or (isinstance(given, ast.Name) and given.id.lstrip("_").isupper())


def _compiles(called: ast.expr) -> bool:
    match called:
        case ast.Attribute(value=ast.Name(id="re"), attr=attr):
            return attr in FUNCTIONS
        case ast.Name(id="compiled"):
            return True
        case _:
            pass
    return False


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FEW": 4_000, "MANY": 8_000, "QUICK": 0.001, "LONGEST": 0.2}.items():
        monkeypatch.setitem(globals(), name, value)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("text", [r"(?:[A-Za-z]{40,}\n)+", r"\s*x", r"<[^>]*>"])
def test_a_quadratic_pattern_is_found(text: str) -> None:
    assert any(_faults("it", re.compile(text), "finditer"))
    assert list(_faults("it", re.compile(text), "match")) == []


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("text", [r"(?:a+)+b", r"[a-z_]+(?:_[a-z_]+)+"])
def test_an_exponential_pattern_is_found(text: str) -> None:
    assert any(_faults("it", re.compile(text), "fullmatch"))
