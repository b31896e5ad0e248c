"""Break the product in one place at a time, and see that a test notices: `python -m tests.mutants [RULING|PATH...]`.

Every mutation is made in a copy of the checkout. Those of `workflows` (`mutations.py`) are caught by a test of the pure
ring, or by one that names their ruling; those of activities and bridge (`outer_mutations.py`) by a test they name.
One that survives is a rule without a test.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.mutations import MUTATIONS
from tests.outer_mutations import OUTER_MUTATIONS
from tests.proofs import Proof, all_proofs
from tests.written import ROOT

PURE = ("contract", "policy", "tree", "pipeline", "github")
AT_ONCE = 2
LONGEST_SECONDS = 1_800
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A file in which one text is another, so that a ruling is broken, or what one test proves."""

    path: str
    old: str
    new: str
    ruling: str = ""
    test: str = ""

    def __str__(self) -> str:
        return f"{self.ruling} {self.path}: {' '.join(self.old.split())}".strip()

    def is_of(self, name: str) -> bool:
        """Return whether it is of this ruling, or in this file or folder."""
        return name == self.ruling or f"{self.path}/".startswith(f"{name.rstrip('/')}/")

    def put_into(self, copy: Path, place: int) -> None:
        """Break the file; its time tells it from other versions of the same second, which Python looks at."""
        file = copy / self.path
        file.write_text((ROOT / self.path).read_text().replace(self.old, self.new))
        os.utime(file, (place, place))

    def take_out_of(self, copy: Path) -> None:
        shutil.copy2(ROOT / self.path, copy / self.path)


MUTANTS = (
    *(
        Mutant(f"workflows/{path}", old, new, ruling=ruling)
        for path, of_file in MUTATIONS.items()
        for ruling, old, new in of_file
    ),
    *(Mutant(path, old, new, test=test) for path, of_file in OUTER_MUTATIONS.items() for test, old, new in of_file),
)


def main(names: Sequence[str]) -> int:
    """Print each mutant's outcome; return 1 if one survived."""
    wanted = [mutant for mutant in MUTANTS if not names or any(mutant.is_of(name) for name in names)]
    survivors, proofs = 0, all_proofs()
    with TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for name in map(str, range(AT_ONCE)):
            copies.put(Path(shutil.copytree(ROOT, Path(folder, name), ignore=_LEFT_OUT)))

        def judged(numbered: tuple[int, Mutant]) -> tuple[Mutant, str]:
            place, mutant = numbered
            copy = copies.get()
            try:
                mutant.put_into(copy, place)
                return mutant, _caught_by(copy, mutant, proofs)
            finally:
                mutant.take_out_of(copy)
                copies.put(copy)

        for mutant, by in pool.map(judged, enumerate(wanted, 1)):
            survivors += not by
            print(f"caught    {mutant}\n          by {by}" if by else f"SURVIVED  {mutant}", flush=True)  # noqa: T201
    print(f"{len(wanted)} mutants, {survivors} survived")  # noqa: T201
    return int(survivors > 0)


def _caught_by(copy: Path, mutant: Mutant, proofs: Sequence[Proof]) -> str:
    """The first test that fails; empty when none does."""
    return next(filter(None, (_failing(copy, tests) for tests in _rounds(mutant, proofs))), "")


def _rounds(mutant: Mutant, proofs: Sequence[Proof]) -> Iterator[list[str]]:
    """The test that the mutant names; else the pure ring's files that name its ruling, all of the pure ring, then the
    files that name it in other rings.
    """
    if mutant.test:
        yield [f"tests/{mutant.test}"]
        return
    proven = (proof.path for proof in proofs if proof.rule == mutant.ruling and not proof.long)
    named = list(dict.fromkeys(f"tests/{path}" for path in proven))
    pure = [f"tests/{ring}" for ring in PURE]
    yield [path for path in named if path.startswith(tuple(pure))]
    yield pure
    yield [path for path in named if not path.startswith(tuple(pure))]


def _failing(copy: Path, tests: list[str]) -> str:
    if not tests:
        return ""
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-x",
        "-n",
        "0",
        "-rfE",
        "-p",
        "no:cacheprovider",
        "-m",
        "not long",
    ]
    environment = os.environ | {"PYTHONPATH": str(copy), "COLUMNS": "400"}
    try:
        ran = subprocess.run(
            [*command, *tests], cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end of {tests[0]}"
    if ran.returncode == 0:
        return ""
    if failed := _FAILED.search(ran.stdout):
        return failed[1]
    raise RuntimeError(f"pytest ended with {ran.returncode}:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
