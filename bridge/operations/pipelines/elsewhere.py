"""Where else a workflow can be seen, as Temporal's web UI tells it: no part of what the workflow goes by."""

from activities.settings import ready
from bridge.operations.service import Service


def web_ui_details(service: Service, command: str, page: str, github: str = "") -> str:
    """In a terminal, on the dashboard where a bridge serves it, and on GitHub if it belongs to something there."""
    address = ready.dashboard_url(service.home, service.settings.bridge)
    places = (
        f"In a terminal: `{command}`",
        f"On the page: {address}{page}" if address else "",
        f"On GitHub: {github}" if github else "",
    )
    return "\n\n".join(place for place in places if place)
