"""Messages of an MCP client of the newest era."""

from collections.abc import Mapping
from typing import Any

VERSION = "2026-07-28"
TASKS: Mapping[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
"""The capability of a client that has tasks."""


def message(
    method: str, capabilities: Mapping[str, Any] = TASKS, header_name: str = "", **params: Any
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the headers and the body of a message; `header_name` stands in the header in place of the right name."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION, "mcp-method": method}
    if named := header_name or params.get("name", params.get("taskId", "")):
        headers["mcp-name"] = named
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
