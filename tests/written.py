"""Documents made from the code: a test fails when one is out of date, and `RULES=write` brings it up to date."""

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent


def keep(path: Path, text: str) -> None:
    """The file says exactly this; or is made to."""
    if os.environ.get("RULES") == "write":
        path.write_text(text)
    assert path.read_text() == text, f"{path.relative_to(ROOT)} is out of date: run the tests once with RULES=write"
