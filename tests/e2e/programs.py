"""The agents' real programs, as installed by `dev-cluster/agents`; a missing one is never skipped silently."""

import json
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.scripted_model import ScriptedModel

ROOT = Path(__file__).parents[2]
PROGRAMS = {"codex": "runtime_a", "claude": "runtime_b", "kimi": "runtime_c"}
"""Runtime of each program."""

CLIENTS = (*PROGRAMS, "opencode")
"""Programs that use the service by MCP."""

BY_ACP = {"opencode": "opencode", "copilot": "copilot", "qwen": "qwen", "kimi": "kimi-acp"}
"""Runtime of each program that is driven by ACP."""

NOT_DRIVEN = "not driven: "


@cache
def _checked() -> tuple[dict[str, str], dict[str, str]]:
    done = subprocess.run(["dev-cluster/agents", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    commands = dict(line.split("\t") for line in done.stdout.splitlines())
    return commands, dict(re.findall(r"^(\w+) \S+: (.*)$", done.stderr, re.MULTILINE))


def installed() -> dict[str, str]:
    """Return the command of every installed program."""
    return _checked()[0]


def available() -> dict[str, str]:
    """Return the commands of the installed programs that runtimes have."""
    return {program: command for program, command in installed().items() if program in PROGRAMS}


def missing() -> dict[str, str]:
    """Return why the other programs are missing."""
    return _checked()[1]


def need(*programs: str) -> None:
    """Skip the test if one of the programs is missing; the run's summary reports that prominently."""
    for program in programs:
        if program not in installed():
            pytest.skip(f"{NOT_DRIVEN}{program}: {missing().get(program)}")


def variables(folder: Path, model: ScriptedModel) -> dict[str, str]:
    """Return the variables that point the programs to the model, each with a folder of its own, and disable retries."""
    (folder / "codex").mkdir(parents=True)
    return {
        "CODEX_HOME": str(folder / "codex"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "KIMI_CODE_HOME": str(folder / "kimi"),
        "SVC_ACCESS": "any",
        "ANTHROPIC_API_KEY": "any",
        "ANTHROPIC_BASE_URL": model.url(),
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "KIMI_MODEL_NAME": "kimi-default",
        "KIMI_MODEL_API_KEY": "any",
        "KIMI_MODEL_BASE_URL": f"{model.url()}/v1",
        "KIMI_LOOP_MAX_ATTEMPTS_PER_STEP": "1",
    }


def sections(model: ScriptedModel, *more: str, read: Iterable[str] = ()) -> str:
    """Return settings of the real programs, with further lines for each and further folders to read."""
    provider = {"name": "svc", "base_url": f"{model.url()}/v1", "env_key": "SVC_ACCESS", "wire_api": "responses"}
    patience = ("request_max_retries=0", "stream_max_retries=0")
    words = [*(f"{key}={value}" for key, value in provider.items()), *patience]
    codex = ["-c", "model_provider=svc", *(part for word in words for part in ("-c", f"model_providers.svc.{word}"))]
    lines = []
    for program, command in available().items():
        lines += [f"[runtimes.{PROGRAMS[program]}]", f'adapter = "{program}"', f"command = {json.dumps([command])}"]
        lines += [
            "rate_limit_retries = 1",
            'rate_limit_backoff = "10s"',
            "network_retries = 0",
            'env = ["SVC_ACCESS"]',
        ]
        lines += [
            f"read = {json.dumps([str(Path(command).parent), *read])}",
            f'hosts = ["{urlsplit(model.url()).netloc}"]',
        ]
        lines += [f"arguments = {json.dumps(codex if program == 'codex' else [])}", *more]
    return "\n".join(lines)
