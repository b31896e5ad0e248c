"""Taking secrets out of text before it is stored, shown or cut (ruling A12).

No library: secret scanners report what they find in files; this replaces it in any text, in linear time, and leaves
harmless words as they are.
"""

import re

from pydantic import JsonValue

from workflows.contract.models import ServiceResult
from workflows.contract.secret_forms import (
    BEARER,
    COOKIE,
    EXPRESSION,
    HARMLESS,
    HINTS,
    NAMED,
    OPTION,
    PEM,
    SCHEME,
    SECRET_KEY,
    TOKENS,
    URL_PASSWORD,
    URL_USER,
)

MARK = "[redacted]"


def redact(text: str) -> str:
    """The text with every known form of secret replaced; redacting twice changes nothing more. Ruling A12."""
    if "-----BEGIN " in text:
        text = PEM.sub(MARK, text)
    if "://" in text:
        text = URL_USER.sub(_if_random, URL_PASSWORD.sub(_if_no_placeholder, text))
    for token in TOKENS:
        text = token.sub(MARK, text)
    text = COOKIE.sub(lambda found: found[0].removesuffix(found[1]) + MARK, text)
    return BEARER.sub(_bearer, _redact_named(text))


def redact_value(value: JsonValue) -> JsonValue:
    """The same for every string of a JSON value; a string under a secret's name goes whole."""
    match value:
        case str():
            return redact(value)
        case list():
            return [redact_value(item) for item in value]
        case dict():
            return {redact(name): _member(name, item) for name, item in value.items()}
        case _:
            return value


def redact_result(result: ServiceResult) -> ServiceResult:
    """The result with its reporting fields redacted; what drives the work (delegations, artifact_body) is untouched."""
    entries = {name: tuple(map(redact_value, getattr(result, name))) for name in _REPORTING}
    return result.model_copy(update={"summary": redact(result.summary), **entries})


_REPORTING = ("findings", "changes_made", "tests_run", "needs")


def _member(name: str, value: JsonValue) -> JsonValue:
    if isinstance(value, str) and SECRET_KEY.fullmatch(name) and _quoted_is_secret(name, value):
        return MARK
    return redact_value(value)


def _unless(keep: object, value: str) -> str:
    return value if keep else MARK


def _if_no_placeholder(found: re.Match[str]) -> str:
    return found[1] + _unless(HARMLESS.fullmatch(found[2]) and not found[2].isalpha(), found[2])


def _if_random(found: re.Match[str]) -> str:
    return found[1] + _unless(not _mixed(found[2]), found[2])


def _bearer(found: re.Match[str]) -> str:
    scheme, value = found.groups()
    random = _mixed(value) and (len(value) >= 16 if scheme.lower() == "bearer" else value != value.lower())
    return found[0].removesuffix(value) + MARK if random else found[0]


def _option(found: re.Match[str]) -> str:
    start = found.start()
    word = found.string[max(0, start - 40) : start].split()
    is_option = word and "--" in word[-1] and not found.string[start - 1].isspace()
    head = found[0].removesuffix(found["bare"])
    return head + _unless(not is_option or HARMLESS.fullmatch(found["bare"]), found["bare"])


def _redact_named(text: str) -> str:
    """Only the lines that may name a secret are looked at closely: the names are slow to search for."""
    whole = text.lower()
    hints = [hint for hint in HINTS if hint in whole]
    lines = text.split("\n") if hints else []
    for place, line in enumerate(lines):
        lower = line.lower()
        if any(hint in lower for hint in hints):
            lines[place] = OPTION.sub(_option, NAMED.sub(_named, line))
    return "\n".join(lines) if hints else text


def _named(found: re.Match[str]) -> str:
    quoted, bare = found["quoted"], found["bare"]
    if quoted is not None:
        secret = _quoted_is_secret(found["name"], quoted)
        return found["head"] + found["quote"] + (MARK if secret else quoted)
    secret = _bare_is_secret(found["name"], bare, tight=found["sep"] == "=", last=found["last"] is not None)
    return found["head"] + (MARK if secret else bare) + (found["last"] or "")


def _quoted_is_secret(name: str, value: str) -> bool:
    """A literal under a secret's name, unless it is a placeholder or reads like a sentence."""
    rest = SCHEME.sub("", value, count=1)
    sentence = any(map(str.isspace, rest)) and name.lower() != "passphrase"
    return len(rest) >= 4 and not sentence and not HARMLESS.fullmatch(rest)


def _bare_is_secret(name: str, value: str, *, tight: bool, last: bool) -> bool:
    """`KEY=value` nearly always; with white space or a colon it may be prose or code, and must look like a secret."""
    rest = SCHEME.sub("", value, count=1)
    if HARMLESS.fullmatch(rest) or EXPRESSION.fullmatch(rest):
        return False
    if tight:
        return len(rest) >= 4 and (name.isupper() or not rest.lower().endswith(name.lower()))
    if rest != value or (last and name.lower().startswith("pass")):
        return len(rest) >= 8
    return (len(rest) >= 6 and _mixed(rest)) or (len(rest) >= 16 and rest.isdigit())


def _mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))
