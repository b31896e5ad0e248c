"""The faults. A module each, with a tuple `FAULTS` of what makes one for a case; `all_faults` collects them."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

from tests.chaos.protocol import Fault


@cache
def all_faults() -> dict[str, Callable[[], Fault]]:
    """Return what makes each fault, by the fault's name."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    makers = [make for module in modules for make in getattr(module, "FAULTS", ())]
    return {make().name: make for make in makers}
