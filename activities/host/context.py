"""The state that all activities of a worker share: service home, settings and store."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Engine

from activities.host.disk_space import DiskRoom
from activities.host.stop_orders import StopOrders
from activities.host.tree_reports import TreeReports
from activities.redaction.kept_secrets import KeptSecrets
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store.artifacts import Artifacts
from activities.store.secret_hosts import kept_secrets
from activities.store.shared_artifacts import artifacts_of


@dataclass(frozen=True)
class Context:
    """The home, settings and store of one host, and what its activities have in common."""

    home: Home
    settings: Settings
    store: Engine
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    reports: TreeReports = field(default_factory=TreeReports)
    """Reports to trees about their running jobs."""
    room: DiskRoom = field(default_factory=DiskRoom)
    stops: StopOrders = field(default_factory=StopOrders)
    load: Callable[[], int] = lambda: 0
    """The number of runs on this host that have a slot or wait for one."""

    @property
    def artifacts(self) -> Artifacts:
        return artifacts_of(self.home, self.settings, self.store)

    @property
    def kept(self) -> KeptSecrets:
        return kept_secrets(self.home, self.settings)

    @property
    def host(self) -> str:
        return self.settings.host
