"""The set-up of the agents' programs, with a fake npm."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "dev-cluster/agents"
PROGRAMS = ("codex", "claude", "kimi", "opencode", "copilot", "mcp", "qwen")

NPM = """\
#!/bin/bash
echo "$@ $(sed -n 's/^ *"\\([@o][^"]*\\)": "\\([0-9][^"]*\\)".*/\\1@\\2/p' package.json | head -1)" >> "$CALLS"
version=$(sed -n 's/^ *"[@o][^"]*": "\\([0-9][^"]*\\)".*/\\1/p' package.json | head -1)
sleep 0.2
for file in node_modules/@openai/codex-x/vendor/x/bin/codex node_modules/@anthropic-ai/claude-code-x/claude \
  node_modules/node-linux-x/bin/node node_modules/@moonshot-ai/kimi-code/dist/main.mjs \
  node_modules/opencode-linux-x/bin/opencode node_modules/@github/copilot-linux-x/copilot \
  node_modules/@qwen-code/qwen-code/cli.js node_modules/@modelcontextprotocol/conformance/dist/index.js; do
  mkdir -p "$(dirname "$file")" npm
  printf '#!/bin/sh\\necho it is %s\\n' "$version" > "$file"
  chmod +x "$file"
done
"""


@pytest.fixture
def npm(tmp_path: Path) -> Path:
    """Create the fake npm, first on the path."""
    program = tmp_path / "bin/npm"
    program.parent.mkdir()
    program.write_text(NPM)
    program.chmod(0o755)
    return program


def start(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AGENTS_CACHE": str(tmp_path / "a cache"),
        "CALLS": str(tmp_path / "calls"),
    }
    pipe = subprocess.PIPE
    return subprocess.Popen([SCRIPT, *words], stdout=pipe, stderr=pipe, text=True, env=environment)


def ran(tmp_path: Path, *words: str) -> tuple[int, str, str]:
    script = start(tmp_path, *words)
    out, err = script.communicate(timeout=60)
    return script.returncode, out, err


def test_two_at_once_install_each_program_once_in_its_pinned_version(npm: Path, tmp_path: Path) -> None:
    both = [start(tmp_path), start(tmp_path)]
    outputs = {script.communicate(timeout=60)[0] for script in both}
    assert [script.returncode for script in both] == [0, 0]
    (output,) = outputs
    commands = dict(line.split("\t") for line in output.splitlines())
    assert tuple(commands) == PROGRAMS
    for command in commands.values():
        version = subprocess.run([command], capture_output=True, text=True, check=True, cwd="/").stdout
        assert version.split()[-1] in command
    calls = (tmp_path / "calls").read_text()
    assert calls.count("\n") == len(PROGRAMS)
    assert all(re.match(r"ci .* --ignore-scripts .* [a-z0-9@/-]+@[0-9a-z.-]+$", call) for call in calls.splitlines())
    kept = {path.name for path in (tmp_path / "a cache").iterdir()}
    assert kept == {"lock", *(Path(command).parent.name for command in commands.values())}
    assert not list((tmp_path / "a cache").glob("*/npm"))
    assert ran(tmp_path) == (0, output, "")
    assert (tmp_path / "calls").read_text() == calls


def test_what_cannot_be_installed_is_named_with_the_reason_and_leaves_nothing_half_made(
    npm: Path, tmp_path: Path
) -> None:
    assert ran(tmp_path, "--check")[2].splitlines()[2] == "kimi 2.1.0: not installed: dev-cluster/agents"
    npm.write_text("#!/bin/sh\necho no way through\nexit 1\n")
    code, out, err = ran(tmp_path)
    assert (code, out) == (1, "")
    assert "codex 0.169.0: npm could not install it: no way through" in err
    assert ran(tmp_path, "--check") == (1, "", "".join(re.findall(r"^\w+ \d.*\n", err, re.MULTILINE)))
    kept = {path.name for path in (tmp_path / "a cache").iterdir()}
    assert kept == {"lock", *(f"{name}.why" for name in PROGRAMS)}
    npm.write_text(NPM)
    assert ran(tmp_path)[0] == 0
    assert not list((tmp_path / "a cache").glob("*.why"))


def test_a_program_that_does_not_say_its_version_is_not_installed(npm: Path, tmp_path: Path) -> None:
    npm.write_text(NPM.replace('"$version"', "0.9"))
    code, out, err = ran(tmp_path)
    assert (code, out) == (1, "")
    assert "claude was installed and does not run here" in err


def test_every_package_is_locked_by_its_digest_and_no_registry_is_named() -> None:
    for lock in SCRIPT.parent.glob("npm/*/package-lock.json"):
        packages = json.loads(lock.read_text())["packages"]
        wanted = json.loads((lock.parent / "package.json").read_text())
        assert {key: packages[""].get(key) for key in ("dependencies", "optionalDependencies")} == {
            key: wanted.get(key) for key in ("dependencies", "optionalDependencies")
        }
        assert all(package["integrity"].startswith("sha512-") for name, package in packages.items() if name)
        assert "://" not in lock.read_text()
