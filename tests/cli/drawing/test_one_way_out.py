"""Only one module of the command line prints; the source is checked for that."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cli
from cli.drawing.output import remember_words, tell_error
from tests.secrets.redaction_table import TOKENS
from workflows.model.errors import Commands, RefusedError

pytestmark = pytest.mark.ruling("N6")

HERE = Path(cli.__file__).parent
WAY_OUT = HERE / "drawing" / "output.py"
ALONE = {
    "demo/agents.py": {
        "print(json.dumps({'type': 'usage', 'input_tokens': len(prompt) // 4, 'output_tokens': 200}))",
        "print(json.dumps({'service_result': result}, indent=2))",
    },
    "mcp_stdio.py": {
        "sys.stdout.buffer",
        "sys.stdout.buffer.write(json.dumps(answer, separators=(',', ':')).encode() + b'\\n')",
        "sys.stderr.write(f'error: {TOKEN} is not set\\ntry: service mcp add CLIENT\\n')",
    },
    "warm/client.py": {"sys.stderr.write(_SAID_IN_JSON if self._as_json else _SAID)"},
    "warm/entry.py": {
        "sys.stderr.write(f'error: {why}\\ntry: {command}\\n')",
        "sys.stderr.write(json.dumps({'error': why, 'code': code, 'hint': command}) + '\\n')",
    },
}
"""Exceptions: another program, no time for it, or unable to import it. They print words of ours only, and escaped
text.
"""
PRINTING = {"print", "secho", "echo", "confirm", "prompt", "echo_via_pager", "getpass", "input"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
WRITING = {"write", "writelines", "buffer"}


def writes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of_typer = isinstance(node.func, ast.Name) or ast.unparse(node.func).startswith(("typer.", "click."))
            if name in PRINTING and of_typer:
                yield ast.unparse(node)
            if name in WRITING and STREAMS & set(ast.unparse(node.func).split(".")):
                yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr == "buffer" and STREAMS & set(ast.unparse(node).split(".")):
            yield ast.unparse(node)


@pytest.mark.parametrize("path", sorted(HERE.rglob("*.py")), ids=lambda path: str(path.relative_to(HERE)))
def test_no_other_module_writes(path: Path) -> None:
    name = str(path.relative_to(HERE))
    writers = set(writes(ast.parse(path.read_text()))) - ALONE.get(name, set()) if path != WAY_OUT else set()
    assert not writers, "use say, tell, say_json, ask_text or hand_over of cli.drawing.output"


def test_the_look_finds_what_it_looks_for() -> None:
    lines = ["print(1)", "typer.echo(1)", "sys.stdout.write('x')", "sys.stderr.buffer.writelines([])", "input()"]
    assert all(list(writes(ast.parse(line))) for line in lines)


def test_a_hint_of_several_commands_has_a_line_for_each_and_none_for_others(capsys: pytest.CaptureFixture[str]) -> None:
    remember_words([])
    tell_error(RefusedError("no\nerror: FORGED", Commands("service job list", "service resume x\n     service kill")))
    tell_error(RefusedError("no", "service job list\n     service job retry FORGED"))
    assert capsys.readouterr().err.splitlines() == [
        "error: no",
        "  | error: FORGED",
        "try: service job list",
        r"     service resume x\n     service kill",
        "error: no",
        r"try: service job list\n     service job retry FORGED",
    ]


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_an_error_is_told_without_the_secrets_of_what_was_typed(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    secret = TOKENS["GitHub personal"]
    remember_words(words)
    tell_error(RefusedError(f"`{secret}` is not one of the choices", f"service resume x answer 'q: {secret}' --other"))
    errors = capsys.readouterr().err
    assert secret not in errors
    assert "is not one of the choices" in errors
    assert "service resume x answer" in errors
