"""Patterns have one meaning on every Python, also before 3.11.5, where possessive groups match wrongly."""

import re
import subprocess
import sys

import pytest

from tests.written import ROOT
from workflows.text.patterns import atomic

pytestmark = pytest.mark.ruling("A1", "A12")


@pytest.mark.parametrize(
    ("possessive", "same"),
    [
        (r"(?:ab?)*+c", r"(?>(?:ab?)*)c"),
        (r"((a+)++b){2,}+", r"(?>((?>(a+)+)b){2,})"),
        (r"(?P<x>a|ab)?+", r"(?>(?P<x>a|ab)?)"),
        (r"[()*+]*+\)*+\(a++", r"[()*+]*+\)*+\(a++"),
        (r"[]\])]*+(?=a)", r"[]\])]*+(?=a)"),
        (r"[^])]++(?:a)*", r"[^])]++(?:a)*"),
        (r"(?:a)*(?:b)+c{2}", r"(?:a)*(?:b)+c{2}"),
    ],
)
def test_a_possessive_group_becomes_an_atomic_one_and_nothing_else_changes(possessive: str, same: str) -> None:
    assert atomic(possessive) == same
    assert re.compile(possessive).groups == re.compile(same).groups


IMPORTS = """
import importlib, pkgutil, re, sys
from workflows.text import patterns
compile_, found = re._compile, []
def watched(pattern, flags):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] == "re":
        frame = frame.f_back
    name = frame.f_globals["__name__"]
    ours = name.split(".")[0] in ("workflows", "activities", "bridge", "cli")
    if ours and name != patterns.__name__ and isinstance(pattern, str) and patterns.atomic(pattern) != pattern:
        found.append(f"{name}: {pattern}")
    return compile_(pattern, flags)
re._compile = watched
for root in ("workflows", "activities", "bridge", "cli"):
    package = importlib.import_module(root)
    for module in pkgutil.walk_packages(package.__path__, f"{root}."):
        if not module.name.endswith("__main__") and "migrations" not in module.name:
            importlib.import_module(module.name)
sys.exit("\\n".join(found) or 0)
"""


def test_every_pattern_with_a_possessive_group_is_compiled_so() -> None:
    command = [sys.executable, "-c", IMPORTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


RIGHT = """
import sys
sys.version_info = (3, 11, 2)
from workflows.text import patterns
assert patterns.WRONG
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


@pytest.mark.long
def test_results_are_found_and_secrets_too_with_atomic_groups() -> None:
    """Simulates an old Python."""
    names = ("contract/test_locate", "contract/test_parse", "secrets/test_redact", "text/test_inert")
    files = [f"tests/{name}.py" for name in names]
    command = [sys.executable, "-c", RIGHT, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
