"""Agents for tests of orders."""

from bridge.operations.registry import agents
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service


def add(service: Service, name: str, *, can: str = "implement", autonomy: str = "workspace-write") -> None:
    agents.add(
        service, NewAgent(name, "shell", command="true", capabilities=can, autonomy=autonomy, repos=("acme/shop",))
    )
