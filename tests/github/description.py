"""Validation of requests and replies against GitHub's own description of its API (`@octokit/openapi`)."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jsonschema_rs import Draft4Validator

from tests.github.tools import need
from tests.github.wire import Json, Reply, Request

SPANNING = ("ref", "branch", "path")
"""Parameters that may contain slashes."""


@dataclass
class Description:
    """A recorder of violations of the description, in the order they were seen."""

    violations: list[str] = field(default_factory=list)

    def check(self, request: Request, reply: Reply) -> None:
        """Check a request and its reply. A refused request need not match: the refusal is seen anyway."""
        if request.path == "/graphql":
            return  # another API, described elsewhere
        operation = _operation(request.method, request.path)
        if operation is None:
            if reply.status != 404:
                self._note(f"{request.line}: GitHub has no such endpoint")
            return
        if reply.status < 400:
            self._asked(request, operation)
        self._answered(request, reply, operation)

    def _asked(self, request: Request, path: str) -> None:
        operation = _paths()[path][request.method.lower()]
        known = [_resolved(each)["name"] for each in operation.get("parameters", [])]
        for name in request.query:
            if name not in known:
                self._note(f"{request.line} asked with {name}: no such parameter")
        if "requestBody" in operation and request.body:
            schema = (path, request.method.lower(), "requestBody")
            self._hold(f"{request.line} asked", _validator(schema), request.json())

    def _answered(self, request: Request, reply: Reply, path: str) -> None:
        described = _paths()[path][request.method.lower()]["responses"]
        line = f"{request.line} {reply.status}"
        if str(reply.status) not in described:
            if reply.status not in (401, 403, 404, 422, 429):  # GitHub does not describe these everywhere
                self._note(f"{line}: no such status, only {', '.join(described)}")
        elif "content" in _resolved(described[str(reply.status)]):
            self._hold(line, _validator((path, request.method.lower(), str(reply.status))), reply.body)

    def _hold(self, line: str, validator: Draft4Validator, value: Any) -> None:
        for error in validator.iter_errors(value):
            place = "/".join(str(each) for each in error.instance_path)
            self._note(f"{line} /{place}: {error.message[:200]}")

    def _note(self, violation: str) -> None:
        self.violations.append(violation)


@cache
def _document() -> Json:
    document: Json = json.loads((need("openapi") / "api.github.com.json").read_text())
    return document


def _paths() -> Json:
    paths: Json = _document()["paths"]
    return paths


def _plain(value: Any) -> Any:
    """Convert OpenAPI 3.0 terms to JSON Schema; `oneOf` becomes `anyOf`, since some alternatives overlap."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {("anyOf" if name == "oneOf" else name): _plain(each) for name, each in value.items() if name != "example"}
    if plain.pop("nullable", None) is True:
        return {"anyOf": [plain, {"type": "null"}]}
    return plain


def _resolved(value: Json) -> Json:
    """Follow a reference."""
    if "$ref" not in value:
        return value
    schema: Json = _document()
    for name in value["$ref"].removeprefix("#/").split("/"):
        schema = schema[name]
    return schema


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return a pattern for every path, those with fewer parameters first: `/issues/comments` is no issue."""

    def pattern(path: str) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", lambda name: ".+" if name[1] in SPANNING else "[^/]+", path))

    return [(pattern(path), path) for path in sorted(_paths(), key=lambda path: (path.count("{"), -len(path)))]


@cache
def _operation(method: str, path: str) -> str | None:
    return next(_fitting(method, path), None)


def _fitting(method: str, path: str) -> Iterator[str]:
    for pattern, operation in _patterns():
        if method.lower() in _paths()[operation] and pattern.fullmatch(path):
            yield operation


@cache
def _validator(where: tuple[str, str, str]) -> Draft4Validator:
    path, method, part = where
    operation = _paths()[path][method]
    body = _resolved(operation[part] if part == "requestBody" else operation["responses"][part])
    schema = _plain(body["content"]["application/json"]["schema"])
    whole = {"allOf": [schema], "components": {"schemas": _needed(schema)}}
    return Draft4Validator(whole, validate_formats=True, ignore_unknown_formats=True)


def _needed(schema: Json) -> Json:
    """Return all schemas that one refers to, transitively."""
    definitions: Json = {}
    left = [schema]
    while left:
        for name in set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(left.pop()))) - set(definitions):
            definitions[name] = _plain(_document()["components"]["schemas"][name])
            left.append(definitions[name])
    return definitions
