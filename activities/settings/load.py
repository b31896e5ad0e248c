"""Reading `config.toml` and the environment into `Settings`, with every fault at once (ruling K4)."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from activities.settings.home import Home
from activities.settings.model import Section, Settings
from workflows.errors import UsageError

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
class Setting:
    """One setting as `config show` prints it."""

    key: str
    value: object
    origin: str


def load_settings(home: Home, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force: defaults, then the file, then the environment."""
    values = _read_file(home)
    for name, (section, key) in ENVIRONMENT.items():
        if name in environ:
            values.setdefault(section, {})[key] = _from_environment(name, environ[name], section, key)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        faults = "\n".join(_sentence(fault, environ) for fault in error.errors())
        raise SettingsError(faults, f"edit {home.config}, then: service config check") from None


def describe(home: Home, environ: Mapping[str, str] = os.environ) -> list[Setting]:
    """Every setting with its value and where that value comes from."""
    settings = load_settings(home, environ)
    written = _flatten(_read_file(home))
    names = {f"{section}.{key}": name for name, (section, key) in ENVIRONMENT.items() if name in environ}
    return [
        Setting(
            key, value, f"environment {names[key]}" if key in names else "config.toml" if key in written else "default"
        )
        for key, value in _flatten(settings).items()
    ]


def _read_file(home: Home) -> dict[str, Any]:
    try:
        return tomllib.loads(home.config.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{home.config} is not valid TOML: {error}", "service config check") from None
    except OSError as error:
        raise SettingsError(f"{home.config} cannot be read: {error.strerror}", "service config check") from None


def _from_environment(name: str, text: str, section: str, key: str) -> object:
    """Ruling K4: a bad value is an error, not a silent default."""
    field = Settings.model_fields[section].annotation.model_fields[key]  # type: ignore[union-attr]
    if field.annotation is not int:
        return text
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise SettingsError(f"{name} must be a positive integer, not {text!r}", f"unset {name}")
    return int(text)


def _sentence(fault: ErrorDetails, environ: Mapping[str, str]) -> str:
    *section, key = [str(part) for part in fault["loc"]]
    where = f"[{'.'.join(section)}].{key}" if section else f"[{key}]"
    where = next((name for name in ENVIRONMENT if name in environ and ENVIRONMENT[name] == (*section, key)), where)
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, _known_keys(section), n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known here: {', '.join(_known_keys(section))}"
        return f"{where} is not a setting{hint}"
    text = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return f"{where}: {text}" if fault["type"] == "value_error" else f"{where} should be {text}, not {fault['input']!r}"


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


def _flatten(values: BaseModel | Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    items = dict(values) if isinstance(values, BaseModel) else values
    flat: dict[str, object] = {}
    for key, value in items.items():
        if isinstance(value, BaseModel | dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
