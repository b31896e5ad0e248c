"""Where else a workflow can be seen, as Temporal's web UI tells it: no part of what the workflow goes by."""

from activities.settings import ready
from bridge.operations.service import Service


def told(service: Service, command: str, page: str) -> str:
    """In a terminal, and on the dashboard where a bridge serves it."""
    terminal = f"In a terminal: `{command}`"
    address = ready.dashboard_url(service.home, service.settings.bridge)
    return f"{terminal}\n\nOn the page: {address}{page}" if address else terminal
