"""Reading long transcripts: the memory that a gigabyte takes, and the time to show the end of 50 MB.

Run it: `python -m tests.benchmarks.bench_streams`. Prints ratios only; the file is created and deleted.
"""

import json
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from activities.agents import codex, transcript
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from tests.activities.agents.recorded import a_call, a_run, adapter

SIZE = 1024 * 1024 * 1024
HIGHEST = 1.5
"""Maximum memory, relative to that after a small stream."""


def stream(path: Path, size: int) -> None:
    """Write a Codex transcript: commands with much output, commentary, a result."""
    noise = {"type": "item.completed", "item": {"type": "command_execution", "aggregated_output": "x" * 60_000}}
    talk = {"type": "item.completed", "item": {"type": "agent_message", "text": "y" * 4_000}}
    block = ((json.dumps(noise) + "\n") * 15 + json.dumps(talk) + "\n").encode()
    with path.open("wb") as file:
        file.write(b'{"type":"thread.started","thread_id":"t"}\n')
        while file.tell() < size:
            file.write(block)
        file.write(b'{"type":"item.completed","item":{"type":"agent_message","text":"the end"}}\n')
        file.write(b'{"type":"turn.completed","usage":{"input_tokens":7,"output_tokens":1}}\n')


def highest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


def read(size: int) -> None:
    with TemporaryDirectory() as folder:
        order = a_call(Path(folder), a_run("codex"))
        order.run_dir.mkdir(parents=True)
        stream(order.run_dir / "stdout.log", size)
        report = adapter("codex").read(order, RunEnd(EndKind.EXITED, order.run_dir, exit_code=0))
        assert (report.text, report.usage.total) == (b"the end", 8)


def page(size: int) -> float:
    """Return the processor time that the last page of a transcript takes."""
    with TemporaryDirectory() as folder:
        run_dir = Path(folder, "job-0123456789ab.1")
        run_dir.mkdir()
        stream(run_dir / "stdout.log", size)
        begun = time.process_time()
        shown = transcript.before(transcript.programs(run_dir, over=True), codex.entries, size, limit=200, longest=2000)
        assert len(shown.entries) >= 100
        return time.process_time() - begun


def main() -> int:
    """Warm up with as much as is ever kept, then read the gigabyte."""
    page(10_000_000)
    longer = page(50_000_000) / page(10_000_000)
    print(f"the last page of 50 MB of transcript: time / that of 10 MB {longer:.2f}")
    read(SIZE // 4)
    before, low = resident(), highest()
    read(SIZE)
    after, high = resident() / before, highest() / low
    print(f"1 GiB of transcript: memory after / before {after:.2f}, highest / highest before {high:.2f}")
    return 0 if max(after, high, longer) < HIGHEST else 1


if __name__ == "__main__":
    sys.exit(main())
