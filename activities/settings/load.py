"""Read `config.toml` and the environment into `Settings`, and report all faults at once (ruling K4).

No library: pydantic-settings reports neither the source of a value nor a fault in the file's own words.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from activities.redaction.known_values import process
from activities.redaction.redact import learn
from activities.runtimes.known_runtimes import runtime_of
from activities.sealing import seal_key
from activities.settings import toml
from activities.settings.home import Home
from activities.settings.in_use import File, SettingsTable
from activities.settings.model import Section, Settings
from workflows.contract.faults import did_you_mean, first
from workflows.model.errors import UsageError
from workflows.text.demands import demand

ENVIRONMENT: dict[str, tuple[str, str]] = {
    "SERVICE_MAX_DELEGATION_DEPTH": ("orchestrate", "max_delegation_depth"),
    "SERVICE_MAX_DELEGATION_TOTAL_JOBS": ("orchestrate", "max_delegation_total_jobs"),
    "SERVICE_TEMPORAL_ADDRESS": ("temporal", "address"),
    "SERVICE_TEMPORAL_PORT": ("temporal", "port"),
    "SERVICE_TEMPORAL_UI_PORT": ("temporal", "ui_port"),
    "SERVICE_BRIDGE_PORT": ("bridge", "port"),
    "SERVICE_STORE_URL": ("store", "url"),
}


class SettingsError(UsageError):
    """The settings cannot be used; the message lists every fault, one per line."""

    code = "settings"


@dataclass(frozen=True)
class Loaded:
    """The settings in force, and the sources they were read from."""

    settings: Settings
    reading: SettingsTable


def load_settings(home: Home, environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings in force: defaults, then the file, then the environment."""
    return load(home, environ).settings


def load(home: Home, environ: Mapping[str, str] = os.environ) -> Loaded:
    """Load the settings in force, each in the form the file takes and with its origin (ruling K4)."""
    home.trust()
    file, written = _read_file(home)
    named = {where: name for name, where in ENVIRONMENT.items() if name in environ}
    overrides = {where: _from_environment(name, environ[name], *where) for where, name in named.items()}
    try:
        settings = Settings.model_validate(_over(written, overrides))
    except ValidationError as error:
        faults = "\n".join(first([_sentence(fault, environ) for fault in error.errors()]))
        variables = {_variable(fault, environ) for fault in error.errors()}
        hint = f"unset {' '.join(sorted(variables))}" if all(variables) else _edit(home)
        raise SettingsError(faults, hint) from None
    _learn_secrets(home, settings, environ)
    in_force = toml.flatten(settings.model_dump(mode="json"))
    as_typed = {path: given for path, given in toml.flatten(written).items() if path in in_force}
    origins = dict.fromkeys(as_typed, "config.toml") | {where: f"environment {name}" for where, name in named.items()}
    return Loaded(settings, SettingsTable(file, in_force, as_typed | overrides, origins))


_PASSWORD = re.compile(r"://[^/@:\s]*:([^/\s]+)@")


def _learn_secrets(home: Home, settings: Settings, environ: Mapping[str, str]) -> None:
    """Treat values that the settings name, the bridge's token and the seal keys as secrets (ruling N7)."""
    password = _PASSWORD.search(settings.store.url)
    learn([environ[name] for name in settings.variables if name in environ] + ([password[1]] if password else []))
    process().watch(home.bridge_token, home.seal_key, *seal_key.files(home.root))


def _over(written: Mapping[str, Any], overrides: Mapping[tuple[str, str], object]) -> dict[str, Any]:
    """Merge the environment's values over the file's. A section that is not a table stays unchanged, to be refused
    later.
    """
    values = dict(written)
    for (section, key), given in overrides.items():
        table = values.get(section, {})
        values[section] = {**table, key: given} if isinstance(table, dict) else table
    return values


def _read_file(home: Home) -> tuple[File, dict[str, Any]]:
    try:
        content = home.config.read_bytes()
        return File.of(home.config, content), _neutral(tomllib.loads(content.decode("utf-8")), _edit(home))
    except FileNotFoundError:
        return File.of(home.config, None), {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{home.config} is not valid TOML: {error}", "service config check") from None
    except OSError as error:
        raise SettingsError(f"{home.config} cannot be read: {error.strerror}", "service config check") from None


def _edit(home: Home) -> str:
    return f"edit {home.config}, then: service config check"


def _neutral(values: dict[str, Any], edit: str) -> dict[str, Any]:
    """Rename sections named after a program, such as `[runtimes.codex]`, to the runtime's name."""
    sections = values.get("runtimes")
    if not isinstance(sections, dict):
        return values
    renamed = {runtime_of(name) or name: section for name, section in sections.items()}
    if len(renamed) < len(sections):
        program, runtime = next((name, runtime_of(name)) for name in sections if runtime_of(name) in sections)
        raise SettingsError(f"[runtimes.{program}] and [runtimes.{runtime}] are one section: leave one out", edit)
    return values | {"runtimes": renamed}


def _from_environment(name: str, text: str, section: str, key: str) -> object:
    """Parse a variable. An invalid value is an error, not a silent default (ruling K4)."""
    field = Settings.model_fields[section].annotation.model_fields[key]  # type: ignore[union-attr]
    if field.annotation is not int:
        return text
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise SettingsError(f"{name} must be a positive integer, not {text!r}", f"unset {name}")
    return int(text)


def _variable(fault: ErrorDetails, environ: Mapping[str, str]) -> str:
    """Return the environment variable that set the invalid value; empty if none did."""
    return next((name for name, where in ENVIRONMENT.items() if name in environ and where == fault["loc"]), "")


def _sentence(fault: ErrorDetails, environ: Mapping[str, str]) -> str:
    text = demand(fault["msg"], "should")
    if not fault["loc"]:  # two sections that conflict: the message names them
        return text
    *section, key = [str(part) for part in fault["loc"]]
    where = f"[{'.'.join(section)}].{key}" if section else f"[{key}]"
    where = _variable(fault, environ) or where
    if fault["type"] == "extra_forbidden":
        known = _known_keys(section)
        hint = did_you_mean(key, known) or f"; known here: {', '.join(known)}"
        return f"{where} is not a setting{hint}"
    return f"{where}: {text}" if fault["type"] == "value_error" else f"{where} {text}, not {fault['input']!r}"


def _known_keys(section: list[str]) -> list[str]:
    model: type[BaseModel] = Settings
    for part in section:
        field = model.model_fields.get(part)
        args = getattr(field.annotation, "__args__", ()) if field else ()
        inner = args[-1] if args else field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, Section)):
            continue
        model = inner
    return sorted(model.model_fields)
