"""Documents generated from the code: a test fails if one is out of date; `RULES=write` updates it."""

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent


def keep(path: Path, text: str) -> None:
    """Check that the file has exactly this text; or write it, with `RULES=write`."""
    if os.environ.get("RULES") == "write":
        path.write_text(text)
    assert path.read_text() == text, f"{path.relative_to(ROOT)} is out of date: run the tests once with RULES=write"
