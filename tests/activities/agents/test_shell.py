"""The shell runtime: usage lines, bounded reading."""

from pathlib import Path

from activities.agents import shell
from activities.agents.adapter import ProgramCall
from activities.agents.shell import Shell
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from tests.activities.agents.recorded import a_run
from workflows.model.spend import Usage

ORDER = ProgramCall(a_run("codex"), b"", None, Path("run"), Path("cwd"), Path("home"))


def ended(stdout: Path, code: int = 0) -> RunEnd:
    """Return the end of a run with this output."""
    stdout.rename(stdout.with_name("stdout.log"))
    return RunEnd(EndKind.EXITED, stdout.parent, exit_code=code)


def test_usage_lines_are_summed_and_everything_else_is_text(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(
        b'{"type":"usage","input_tokens":10,"output_tokens":2}\nwords {"type":"usage","input_tokens":99}\n'
        b'{"type":"usage","input_tokens":5}\n{"type":"usage","input_tokens":-5}\n{"type":"usage","input_tokens":true}\n'
        b'{"type":"usage"\n[1]\n\xff\xfe\n' + b"x" * 9000 + b'{"type":"usage","input_tokens":7}\n'
    )
    report = Shell((), {}).read(ORDER, ended(out))
    assert report.usage == Usage(input_tokens=15, output_tokens=2)
    assert report.text == (tmp_path / "stdout.log").read_bytes()


def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as file:
        file.write(b'{"type":"usage","input_tokens":1}\n')
        file.truncate(shell.TEXT_LIMIT * 3)
        file.seek(0, 2)
        file.write(b"\nthe end")
    report = Shell((), {}).read(ORDER, ended(out))
    assert report.usage == Usage(input_tokens=1)
    assert len(report.text) == shell.TEXT_LIMIT
    assert report.text.endswith(b"the end")
