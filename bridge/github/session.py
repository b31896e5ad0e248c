"""What every step of a turn needs: the service, the client, who we are."""

from dataclasses import dataclass

from sqlalchemy import Engine

from activities.github.client import Client
from activities.settings.model import Github
from bridge.operations.service import Service


@dataclass(frozen=True)
class Session:
    """One account at work for one service."""

    service: Service
    client: Client

    @property
    def store(self) -> Engine:
        return self.service.store

    @property
    def settings(self) -> Github:
        return self.service.settings.github
