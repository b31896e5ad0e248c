"""Strict reading of an object's members: a reader returns the clean value, or notes a fault and returns None.

A null member, or an optional member with a blank string, counts as not set: structured-output modes make models write
every member.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import JsonValue

from workflows.contract.examples import PLACEHOLDERS
from workflows.contract.faults import Fault, Faults, did_you_mean, member, quote
from workflows.contract.locate import Members
from workflows.contract.size_limits import too_long, too_many
from workflows.contract.unstorable import unclean

Choice = TypeVar("Choice", bound=StrEnum)
Object = dict[str, JsonValue]
Clean = dict[str, object]
"""Valid members, ready to become a model."""


@dataclass(frozen=True, slots=True)
class Scope:
    """An object under validation: its path, the prefix of its fault lines (ruling A4), and the names of its members in
    those lines.
    """

    source: Object
    faults: Faults
    path: str = ""
    prefix: str = ""
    label: str = ""

    def inner(self, name: str, source: Object) -> "Scope":
        """Return the scope of an object member; faults name its own members as `name.member`."""
        return Scope(source, self.faults, member(self.path, name), self.prefix, f"{self.label}{name}.")

    def fault(self, name: str, sentence: str) -> None:
        """Note a fault of a member: `<field> <sentence>`."""
        where = f"{self.path}.{name}" if self.path else name
        self.faults.add(Fault(where, f"{self.prefix}{self.label}{name} {sentence}"))

    def take(self, name: str) -> JsonValue:
        """Return the raw member, and note a fault for everything unstorable in it; None if it is not set."""
        value = self.source.get(name)
        for place, sentence in unclean(value, name):
            self.fault(place, sentence)
        return value

    def is_set(self, name: str) -> bool:
        """Return whether the member is set, even to an invalid value."""
        value = self.source.get(name)
        return bool(value.strip()) if isinstance(value, str) else value is not None

    def text(self, name: str, *, required: bool = False, of: str = "") -> str | None:
        """Read a string within its named bound; blank counts as not set (ruling B6)."""
        value = self.take(name)
        if not self.is_set(name):
            if required:
                self.fault(name, "is required")
            return None
        if not isinstance(value, str):
            self.fault(name, f"must be a string, not {kind(value)}")
            return None
        if of and (sentence := too_long(of, value)):
            self.fault(name, sentence)
        if value in PLACEHOLDERS:
            self.placeholder(name, value)
        return value

    def placeholder(self, name: str, value: str) -> None:
        """Note a fault if the value is an example's placeholder that the writer did not replace (ruling P6)."""
        self.fault(name, f"{quote(value)} is a placeholder of the example: put your own text in its place")

    def choice(self, name: str, of: type[Choice], *, required: bool = False) -> Choice | None:
        """Read one of the allowed values, matched exactly (ruling A7)."""
        value = self.text(name, required=required)
        if value is None:
            return None
        if value in tuple(of):
            return of(value)
        near = did_you_mean(value, of) if sum(choice in value for choice in of) < 2 else "; choose one"
        self.fault(name, f"must be one of {', '.join(of)}, not {quote(value)}{near}")
        return None

    def integer(self, name: str, at_least: int, sentence: str) -> int | None:
        """Read a whole number; booleans and 2.0 are refused (ruling A8)."""
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            shown = kind(value) if isinstance(value, list | dict) else quote(value)
            self.fault(name, f"must be an integer, not {shown}")
            return None
        if value < at_least:
            self.fault(name, sentence)
            return None
        return value

    def array(self, name: str, of: str) -> list[JsonValue]:
        """Read an array; absent and null are empty (ruling A6)."""
        return self.entries(name, of, self.take(name))

    def entries(self, name: str, of: str, value: JsonValue) -> list[JsonValue]:
        """Return the value as an array, with its entries unchecked."""
        if value is None or isinstance(value, list):
            return value or []
        self.fault(name, f"must be an array of {of}, not {kind(value)}")
        return []

    def strings(self, name: str, *, of: str = "") -> list[str]:
        """Read an array of strings that are not blank. `of` names the bound of each text; with it, their number is
        bounded too (ruling B6).
        """
        clean, entries = [], self.array(name, "strings")
        if of and (sentence := too_many(name, len(entries))):
            self.fault(name, sentence)
            return []
        for index, item in enumerate(entries):
            if not isinstance(item, str) or not item.strip():
                self.fault(f"{name}[{index}]", "must be a string that is not blank")
                continue
            if of and (sentence := too_long(of, item)):
                self.fault(f"{name}[{index}]", sentence)
            clean.append(item)
        return clean

    def close(self, known: Iterable[str], around: Container[str] = ()) -> None:
        """Note every unknown and every duplicate member (ruling A3). `around` has the member names of the enclosing
        object: a member with such a name was put too deep.
        """
        names = tuple(known)
        owner = self.label.removesuffix(".")
        at = f"{owner} has the " if owner else ""
        for name in (name for name in self.source if name not in names):
            if name == "next_agents":
                sentence = "next_agents was replaced by delegations: list the follow-up jobs there"
            else:
                near = "; put it into the object around it" if name in around else did_you_mean(name, names)
                sentence = f"{at}unknown key {quote(name)}{near}"
            self.faults.add(Fault(member(self.path, name), f"{self.prefix}{sentence}", unknown_key=True))
        for name in self.source.duplicates if isinstance(self.source, Members) else ():
            self.faults.add(Fault(member(self.path, name), f"{self.prefix}{self.label}{name} is given more than once"))


def kind(value: JsonValue) -> str:
    """Return the JSON type of a value in words, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"


def set_only(clean: Clean) -> Clean:
    """Drop members that are not set."""
    return {name: value for name, value in clean.items() if value is not None}
