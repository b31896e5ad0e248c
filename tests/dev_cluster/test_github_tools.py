"""The set-up of the tools that test the GitHub client, with a fake npm."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "dev-cluster/github-tools"
NAMES = ("openapi", "examples", "schemas")

NPM = """\
#!/bin/bash
echo "$@" >> "$CALLS"
read -r package version <<< "$(sed -n '/"dep/,/}/s/^ *"\\([^"]*\\)": "\\([0-9.]*\\)".*/\\1 \\2/p' package.json)"
here=node_modules/$package
mkdir -p "$here"/{generated,api.github.com} npm
printf '{"name": "x", "version": "%s"}' "$version" > "$here/package.json"
touch "$here"/generated/{api.github.com,other}.json "$here"/api.github.com/index.json "$here"/schema.json
"""


@pytest.fixture
def npm(tmp_path: Path) -> Path:
    program = tmp_path / "bin/npm"
    program.parent.mkdir()
    program.write_text(NPM)
    program.chmod(0o755)
    return program


def ran(tmp_path: Path, *words: str) -> tuple[int, dict[str, str], str]:
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AGENTS_CACHE": str(tmp_path / "a cache"),
        "CALLS": str(tmp_path / "calls"),
    }
    done = subprocess.run([SCRIPT, *words], capture_output=True, text=True, env=environment, check=False, timeout=60)
    return done.returncode, dict(line.split("\t") for line in done.stdout.splitlines()), done.stderr


def test_the_folders_are_there_after_one_installation_each(npm: Path, tmp_path: Path) -> None:
    code, folders, errors = ran(tmp_path)
    assert (code, tuple(folders)) == (0, NAMES), errors
    assert [path.name for path in Path(folders["openapi"]).iterdir()] == ["api.github.com.json"]
    assert Path(folders["examples"], "index.json").exists()
    assert Path(folders["schemas"], "schema.json").exists()
    calls = (tmp_path / "calls").read_text()
    assert calls.count("\n") == len(NAMES)
    assert ran(tmp_path, "--check")[:2] == (0, folders)
    assert (tmp_path / "calls").read_text() == calls


def test_what_is_missing_is_named_with_the_reason(npm: Path, tmp_path: Path) -> None:
    code, folders, errors = ran(tmp_path, "--check")
    assert (code, folders) == (1, {})
    assert "openapi 23.0.2: not installed: dev-cluster/github-tools\n" in errors
    npm.write_text(NPM.replace('"$version" > "$here', '0.1 > "$here'))
    assert "openapi was installed and does not run here" in ran(tmp_path)[2]
