"""The console script, installed as the module `delegation_service`, a name that no other package takes.

The service's packages have names that other packages may have too (`cli`, `workflows`). If such a package shadows one
of them, this script reports it with the remedy. It imports nothing of the service before that check.
"""

import os
import sys
from importlib.machinery import PathFinder

_OURS = {
    "cli": "warm/start.py",
    "workflows": "model/errors.py",
    "activities": "settings/home.py",
    "bridge": "operations/service.py",
}
"""Each of the service's packages with a file that identifies it: no other package of the same name has it."""
_OWN = "pipx install delegation-service  (or: uv tool install delegation-service)"


def run() -> None:
    """Run the typed command, and exit with its code."""
    if fault := _name_conflict():
        _tell(*fault, "name_taken")
        sys.exit(1)
    try:
        from cli.warm import start

        start.run()
    except ImportError as error:
        _tell(f"the service is not completely installed: {str(error)!a}", f"install it again: {_OWN}", "not_whole")
        sys.exit(1)


def _name_conflict() -> tuple[str, str] | None:
    """Return the error and the remedy if another package shadows one of the service's packages."""
    for name, file in _OURS.items():
        spec = PathFinder.find_spec(name)
        places = list(spec.submodule_search_locations or [spec.origin or "."]) if spec else []
        if places and not any(os.path.isfile(os.path.join(place, file)) for place in places):
            why = f"another package has the name {name} of one of the service's: {places[0]!a}"
            return why, _remedy(os.path.dirname(places[0]))
    return None


def _remedy(folder: str) -> str:
    """Return the remedy. PYTHONPATH precedes everything, also in a virtual environment."""
    named = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    if os.path.abspath(folder) in named:
        return f"env -u PYTHONPATH service ...  (PYTHONPATH names {folder!a})"
    return f"install it in an environment of its own: {_OWN}"


def _tell(why: str, command: str, code: str) -> None:
    if "--json" in sys.argv:
        import json

        sys.stderr.write(json.dumps({"error": why, "code": code, "hint": command}) + "\n")
    else:
        sys.stderr.write(f"error: {why}\ntry: {command}\n")
