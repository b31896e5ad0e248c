"""Calls of tools for a step, chosen from those the request offers: every program has its own."""

import json
import shlex
from typing import Any

from tests.scripted_model.scenarios import Step
from tests.scripted_model.wire import Asked, Call, Json

WRITERS = ("Write", "WriteFile", "write_file", "write", "create_file", "create")
READERS = ("Read", "ReadFile", "read_file", "read", "view")
SHELLS = ("exec_command", "shell_command", "shell", "local_shell", "Bash", "Shell", "bash", "run_shell_command")
RESULT_TOOL = "StructuredOutput"
"""The tool by which claude takes a result in the form of a schema."""

PATHS = ("file_path", "filePath", "path", "absolute_path")


def planned(step: Step, asked: Asked) -> Call | None:
    """Return the call of a step, if it has one and the request offers a tool for it."""
    if "result" in step and RESULT_TOOL in asked.tools:
        return Call(RESULT_TOOL, {"service_result": step["result"]})
    if "tool" in step:
        return _exactly(step["tool"], asked.tools)
    if _takes_javascript(asked.tools):
        return _in_javascript(step, asked.tools["exec"])
    if "mcp" in step:
        own = f"service_{step['mcp']['name']}"  # opencode's
        return Call(own if own in asked.tools else _of_server(step["mcp"]), step["mcp"].get("input", {}))
    if "write_file" in step:
        return _write(step["write_file"], asked)
    if "read_file" in step:
        return _read(step["read_file"]["path"], asked)
    return _run(step["run"], asked.tools) if "run" in step else None


def _exactly(wanted: Json, tools: dict[str, Json]) -> Call:
    name, given = wanted["name"], wanted.get("input", {})
    namespace = tools.get(name, {}).get("namespace")
    if isinstance(given, str):
        return Call(name, raw=given, namespace=namespace)
    return Call(name, given, namespace=namespace)


def _of_server(wanted: Json) -> str:
    """Return what the programs call a tool of an MCP server, which they offer to those who search."""
    return f"mcp__{wanted.get('server', 'service')}__{wanted['name']}"


def _takes_javascript(tools: dict[str, Json]) -> bool:
    """Return whether codex offers only one tool, which runs JavaScript that calls the others."""
    return tools.get("exec", {}).get("type") == "custom" and "exec_command" not in tools


def _in_javascript(step: Step, tool: Json) -> Call | None:
    if "write_file" in step:
        script = f"text(await tools.apply_patch({json.dumps(_patch(step['write_file']))}));"
    elif "read_file" in step or "run" in step:
        command = step["run"] if "run" in step else f"cat {shlex.quote(step['read_file']['path'])}"
        words = json.dumps({"cmd": command, "yield_time_ms": 30000})
        script = f"const r = await tools.exec_command({words}); text(r);"
    elif "mcp" in step:
        given = json.dumps(step["mcp"].get("input", {}))
        script = f"text(JSON.stringify(await tools.{_of_server(step['mcp'])}({given})));"
    else:
        return None
    return Call("exec", raw=script, namespace=tool.get("namespace"))


def _patch(file: Json) -> str:
    lines = "".join(f"+{line}\n" for line in file["content"].splitlines())
    return f"*** Begin Patch\n*** Add File: {file['path']}\n{lines}*** End Patch\n"


def _write(file: Json, asked: Asked) -> Call | None:
    if patcher := asked.tools.get("apply_patch"):
        patch, namespace = _patch(file), patcher.get("namespace")
        if patcher.get("type") == "custom":
            return Call("apply_patch", raw=patch, namespace=namespace)
        return Call("apply_patch", {"input": patch}, namespace=namespace)
    if name := _first(asked.tools, WRITERS):
        text = "file_text" if "file_text" in _parameters(asked.tools[name]) else "content"
        return Call(name, _where(asked, name, file["path"]) | {text: file["content"]})
    return _run(f"cat > {shlex.quote(file['path'])} <<'SCRIPT_END'\n{file['content']}SCRIPT_END", asked.tools)


def _read(path: str, asked: Asked) -> Call | None:
    if name := _first(asked.tools, READERS):
        return Call(name, _where(asked, name, path))
    return _run(f"cat {shlex.quote(path)}", asked.tools)


def _run(command: str, tools: dict[str, Json]) -> Call | None:
    name = _first(tools, SHELLS)
    if name is None:
        return None
    namespace, takes = tools[name].get("namespace"), _parameters(tools[name])
    if name == "shell":
        return Call(name, {"command": ["bash", "-lc", command]}, namespace=namespace)
    word = "cmd" if name == "exec_command" and ("cmd" in takes or "command" not in takes) else "command"
    described = {"description": "scripted command"} if "description" in takes else {}
    return Call(name, {word: command} | described, namespace=namespace)


def _where(asked: Asked, tool: str, path: str) -> Json:
    takes = _parameters(asked.tools[tool])
    word = next((key for key in PATHS if key in takes), PATHS[0])
    return {word: path if path.startswith("/") else f"{asked.cwd}/{path}"}


def _first(tools: dict[str, Json], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in tools), None)


def _parameters(tool: Json) -> dict[str, Any]:
    schema = tool.get("input_schema") or tool.get("parameters") or {}
    return schema.get("properties") or {}
