"""The daemon of a home: run, start, stop, see."""

from activities.settings.home import Home
from bridge.daemon import control
from bridge.daemon.control import DaemonStatus
from bridge.daemon.discovery import TemporalAddress, discover, external_address
from bridge.daemon.foreground import run_foreground
from bridge.daemon.options import DaemonOptions

__all__ = ["DaemonOptions", "DaemonStatus", "TemporalAddress", "discover", "run", "start", "status", "stop"]


def run(home: Home, options: DaemonOptions) -> None:
    """Run the whole group in the foreground until it is told to stop."""
    run_foreground(home, _placed(options))


def start(home: Home, options: DaemonOptions) -> DaemonStatus:
    """Start it in the background; returns once everything works."""
    return control.start(home, _placed(options))


def stop(home: Home) -> bool:
    """Stop it; False when it did not run."""
    return control.stop(home)


def status(home: Home) -> DaemonStatus:
    """What runs, where it listens, how well."""
    return control.status(home)


def _placed(options: DaemonOptions) -> DaemonOptions:
    """No server of our own where the environment or a profile names a cluster."""
    if not options.embedded or (external := external_address()) is None:
        return options
    return options.model_copy(update={"embedded": False, "address": external.address, "namespace": external.namespace})
