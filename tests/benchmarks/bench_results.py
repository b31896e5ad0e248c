"""What a result costs as Claude's last message, and by its tool for results (ruling S6): requests, kilobytes, repairs.

The real program plays against the scripted model, which errs once in each of these ways and then answers right.

    python -m tests.benchmarks.bench_results
"""

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.runtimes.known_runtimes import CLAUDE
from tests.activities.agents.recorded import a_call, a_run, adapter
from tests.contract.wrong_results import GOOD, WRONG
from tests.e2e.programs import available
from tests.scripted_model import ScriptedModel
from tests.scripted_model.scenarios import Scenarios, Step
from workflows.contract.locate import KEY
from workflows.contract.parse import Rejected, read_result
from workflows.contract.prompt_contract import Form, explain_contract
from workflows.contract.repair_prompt import repair_prompt

WAYS = {"right": json.dumps({KEY: GOOD})} | {name: row.output for name, row in WRONG.items()}


def scenario(output: str, tool: str) -> list[Step]:
    """Return what a model says that errs once: by the tool if it has one and the output is an object at all."""
    right: Step = {"tool": {"name": tool, "input": {KEY: GOOD}}} if tool else {"result": GOOD}
    try:
        given = json.loads(output)
    except ValueError:
        given = None
    wrong: Step = {"tool": {"name": tool, "input": given}} if tool and isinstance(given, dict) else {"text": output}
    return [wrong, right]


def play(folder: Path, model: ScriptedModel, name: str, tool: str) -> bool:
    """Play a job with at most one repair; return whether it needed that."""
    environ = {"ANTHROPIC_BASE_URL": model.url(name), "ANTHROPIC_API_KEY": "any", "CLAUDE_CODE_MAX_RETRIES": "0"}
    claude = adapter("claude", environ, command=[available()["claude"]], structured=bool(tool))
    session, prompt = None, explain_contract(Form.WHOLE, tool=tool)
    for again in (False, True):
        call = a_call(folder / str(again), a_run("claude"), session, prompt.encode())
        call = replace(call, cwd=folder, home=folder / "home")
        call.run_dir.mkdir(parents=True)
        launch = claude.launch(call)
        with open(call.run_dir / "stdout.log", "wb") as out, open(call.run_dir / "stderr.log", "wb") as err:
            done = subprocess.run(
                launch.argv, input=launch.stdin, stdout=out, stderr=err, env=launch.env, cwd=folder, check=False
            )
        report = claude.read(call, RunEnd(EndKind.EXITED, call.run_dir, exit_code=done.returncode, started_at=0.0))
        assert report.fault is None, report.fault
        read = read_result(report.text, prompt=prompt, after_repair=again)
        if not isinstance(read, Rejected):
            return again
        session = report.session
        model.scenarios[name] = scenario(json.dumps({KEY: GOOD}), tool)
        prompt = repair_prompt(read.faults, report.text, tool=tool)
    raise AssertionError(name)


def measured(tool: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield each way with its requests, the bytes sent, and its repairs."""
    scenarios: Scenarios = {f"way-{n}": scenario(output, tool) for n, output in enumerate(WAYS.values())}
    with ScriptedModel(scenarios) as model:
        for number, way in enumerate(WAYS):
            before = len(model.requests())
            with tempfile.TemporaryDirectory() as folder:
                repaired = play(Path(folder), model, f"way-{number}", tool)
            asked = model.requests()[before:]
            yield way, len(asked), sum(len(json.dumps(request["body"])) for request in asked), int(repaired)


def main() -> None:
    """Print both for each way, and their sums."""
    total = [[0, 0, 0], [0, 0, 0]]
    print(f"{'':44}{'last message':>22}{'by the tool':>22}")
    for (way, *text), (_, *tool) in zip(measured(""), measured(CLAUDE.result_tool), strict=True):
        total = [[a + b for a, b in zip(total[n], row, strict=True)] for n, row in enumerate((text, tool))]
        _say(way, (text, tool))
    _say("sum", total)


def _say(way: str, sides: Iterable[list[int]]) -> None:
    print(
        f"{way[:43]:44}" + "".join(f"{requests:8}{size // 1024:7} kB{repairs:3}" for requests, size, repairs in sides)
    )


if __name__ == "__main__":
    main()
