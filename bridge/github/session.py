"""The dependencies of every step of a turn: the service and the client."""

from dataclasses import dataclass

from sqlalchemy import Engine

from activities.github.client import Client
from activities.settings.model import Github
from bridge.operations.service import Service


@dataclass(frozen=True)
class Session:
    """One GitHub account that serves one service."""

    service: Service
    client: Client

    @property
    def store(self) -> Engine:
        return self.service.store

    @property
    def settings(self) -> Github:
        return self.service.settings.github
