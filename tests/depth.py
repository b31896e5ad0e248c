"""Numbers of generated cases: few, or many with `THOROUGH=1` (`dev-cluster/test --all`)."""

import os

THOROUGH = os.environ.get("THOROUGH", "") not in ("", "0")


def cases(few: int, many: int) -> int:
    return many if THOROUGH else few
