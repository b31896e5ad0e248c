"""The names of files that builds and tests leave in a work folder, which are not a job's work (ruling I4)."""

from collections.abc import Collection

_FOLDERS = frozenset(
    {
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        ".venv",
        "node_modules",
        ".gradle",
    }
)
_FILES = (".pyc", ".pyo")
_BESIDE = {"target": frozenset({"Cargo.toml", "pom.xml"})}
"""Folders with common names, which count only beside one of these files of a build tool."""


def is_product_folder(name: str, beside: Collection[str]) -> bool:
    """Return whether a folder holds build products, judged by its name and the names beside it."""
    return name in _FOLDERS or not _BESIDE.get(name, frozenset()).isdisjoint(beside)


def is_product_file(name: str) -> bool:
    """Return whether a file is a build product, judged by its name."""
    return name.endswith(_FILES)
