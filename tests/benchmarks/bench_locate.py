"""Scaling of result location: time relative to one pass of `json.loads` over a text of equal size.

Run it on an idle machine: `python tests/benchmarks/bench_locate.py`. A row is linear if its ratios stay level from left
to right.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from workflows.contract.locate import KEY, locate
from workflows.contract.parse import read_result
from workflows.secrets.redact import redact

MIB = 2**20
SIZES = (1, 2, 5, 10)
RESULT = json.dumps({KEY: {"decision": "approved", "summary": "ok"}})
EVENT = json.dumps({"type": "message", "text": 'said "no" {to} it\n', "usage": {"in": 1, "out": [2, 3]}}) + "\n"
HOSTILE = (
    "{", '{"', "[", '{"service_result":', '{"service_result":[', '{"service_result":{"a":', '{"a":', '{"a":1}',
    "\\", '"', '\\"', '"\\', '"{', '"\n', '{"\\', "}", '{"service_result":{}}', '"service_result":',
)  # fmt: skip
FRIENDLY = {"prose": 'The tests pass, and it\'s "fine" now. ', "events": EVENT, "spaces": "  \n"}


def seconds(work: Callable[[str], object], text: str) -> float:
    start = time.perf_counter()
    work(text)
    return time.perf_counter() - start


def plain_scan(size: int) -> float:
    """Return the standard library's time to parse JSON of this size."""
    text = json.dumps([json.loads(EVENT)] * (size // len(EVENT)))
    return min(seconds(json.loads, text) for _ in range(3))


def row(name: str, unit: str, work: Callable[[str], object], end: str = RESULT) -> str:
    cells = []
    for mib in SIZES:
        took = seconds(work, unit * (mib * MIB // len(unit)) + end)
        cells.append(f"{took:8.3f} s {took / BASE[mib]:7.1f} x")
    return f"{name:28}" + "".join(cells)


BASE = {mib: plain_scan(mib * MIB) for mib in SIZES}


def main() -> None:
    lines = [f"{'':28}" + "".join(f"{f'{mib} MiB':>20}" for mib in SIZES)]
    lines += [row(f"locate {name}", unit, locate) for name, unit in FRIENDLY.items()]
    lines += [row(f"locate {unit!r}", unit, locate) for unit in HOSTILE]
    lines += [row(f"read {unit!r}", unit, read_result) for unit in ('{"service_result":{}}', RESULT)]
    lines += [row(f"redact {name}", unit, redact) for name, unit in FRIENDLY.items()]
    lines += [
        row(f"redact {unit!r}", unit, redact)
        for unit in ("-", "token=", "xoxb-", "://a:", "-----BEGIN PRIVATE KEY-----")
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
