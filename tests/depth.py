"""How many cases are tried by tests that make them up: few, or with `THOROUGH=1` (`dev-cluster/test --all`) many."""

import os

THOROUGH = os.environ.get("THOROUGH", "") not in ("", "0")


def cases(few: int, many: int) -> int:
    return many if THOROUGH else few
