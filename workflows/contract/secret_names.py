"""Finds secrets by the name they stand under: `TOKEN=...`, `"password": "..."`, `client_secret: ...`.

A name alone is not enough: its value must be a literal, and no placeholder, expression or sentence.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from workflows.contract.patterns import compiled
from workflows.contract.secret_spans import Span

_KINDS = [
    "api",
    "app",
    "access",
    "private",
    "secret",
    "encryption",
    "encrypt",
    "decryption",
    "signing",
    "signature",
    "master",
    "deploy",
    "deployment",
    "account",
    "auth",
    "ssh",
    "service",
    "shared",
    "storage",
    "subscription",
    "function",
    "functions",
    "admin",
    "root",
    "client",
    "server",
    "license",
    "licence",
    "session",
    "write",
    "consumer",
    "instrumentation",
    "webhook",
    "hmac",
    "crypto",
    "cipher",
    "aes",
    "host",
    "personal",
    "integration",
    "bot",
    "primary_api",
    "secondary_api",
    "endpoint_access",
]
NAME = (
    r"(?:passw(?:or)?d|passphrase|passcode|pwd|(?<![a-z])pass(?![a-z])|secret|token|credentials?|authorization"
    rf"|(?:{'|'.join(_KINDS)})[ _-]?(?:access[_-]?)?key|(?<=[a-z0-9]_)key(?=[ \t]*=)"
    r"|_auth(?![a-z])|connection[_-]?string"
    r"|shared[_-]?access[_-]?signature|webhook[_-]?url|(?<![a-z])(?:mnemonic|pat|jwt|dsn|otp|pin)(?![a-z])"
    r"|[_-](?:pat|jwt|dsn)(?![a-z]))"
    r"(?:[_-]?(?:access|key|base|value|data|text|literal|prod|production|dev|test|staging|live|main|b64|base64|hex"
    r"|[0-9]{1,4})){0,3}"
)
_HINTS = ("pass", "pwd", "secret", "token", "credential", "authorization", "key", "auth", "string", "signature", "url",
          "mnemonic", "pat", "jwt", "dsn", "otp", "pin")  # fmt: skip
_SEARCHED = compiled(NAME)
"""In a text in lower case."""
SECRET_KEY = compiled(rf"(?is:.*{NAME})")

_VALUE = compiled(
    r"(?P<sep>\\*[\"'`]?(?:\][\"']?|[\"'])?[ \t]*+(?:=>|:=|==|=|:)[ \t]*+)"
    r"(?:(?P<quote>\\*(?:\"\"\"|[\"'`]))(?P<quoted>(?:(?!(?P=quote))(?:[^\n\\]|\\.))*+)(?=(?P=quote))"
    r"|(?P<bare>(?:(?i:bearer|basic|token|apikey)[ \t]++)?[^\s\"'`,;&)}\]<>|\\]{3,}+)(?P<last>[ \t\r]*+(?:\n|\Z))?)"
)
_OPTION = compiled(r"[ \t]++(?P<quote>[\"']?)(?P<bare>[^-$<{\[(\s\"'`][^\s\"'`]{3,}+)")
_SAID = compiled(r"(?:[ \t]+(?:is|was|to))?[ \t]*:?[ \t]+[\"'`]?(?P<bare>[^\s\"'`,;()<>]{8,200}+)")

_SHORT_NAMES = ("pin", "otp", "dsn", "pat", "key")
"""They name many things; only what looks drawn by chance is a secret under them."""

_SCHEME = compiled(r"(?i:bearer|basic|token|apikey)[ \t]++")
HARMLESS = compiled(
    r"(?i:none|null|nil|true|false|undefined|str|string|int|bool|bytes|optional|required|missing|invalid|expired|empty"
    r"|unset|changeme|change[-_]me|example|placeholder|bearer|basic|token|password|passwd|secret|redacted|hidden|masked"
    r"|todo|tbd|n/a|same-origin|include|omit|x{3,}|\*+|\.{3,}|(?:•)+|your[_-]?.*|my[_-]?(?:secret|token|password|api[_-]?key)|<.*|\$.*|\{.*|%.*%"
    r"|%[a-z]|@.*@|[a-z+]+://[^@]*|(?:~|\.{0,2})/[\w.@-]+/.*|[a-z]:\\.*|\[redacted.*|redacted-[0-9a-f]{20}|(?:env|file|arn|vault|op|secretref)[:.].*"
    r"|(?:dummy|fake|sample|example|insert|enter|replace|put|the|some|any)[-_ ].*|#.*|!\w+)"
)
_EXPRESSION = compiled(
    r"[A-Za-z_]+(?:_[A-Za-z_]+|(?:\??\.|->|::)\w+)+[!;]?|[A-Za-z_][\w.:>?!-]*[(\[].*|[\w.]+\|\|.*|!?!\w+"
)


def named(text: str) -> Iterator[Span]:
    """Where values stand under a secret's name."""
    lower = text.lower() if text.isascii() else text.translate(_LOWER)
    if not any(hint in lower for hint in _HINTS):
        return
    done = 0
    for found in _SEARCHED.finditer(lower):
        end = found.end()
        if found.start() < done:
            continue
        if value := _VALUE.match(text, end):
            if span := _assigned(text, found.start(), end, value):
                done = span[1]
                yield span
        elif option := _OPTION.match(text, end) if _is_option(text, found.start()) else None:
            if not HARMLESS.fullmatch(option["bare"]):
                done = option.end()
                yield option.span("bare")
        elif (said := _SAID.match(text, end)) and mixed(said["bare"]) and _random(said["bare"].rstrip(".!?:")):
            done = said.end()
            yield said.start("bare"), said.start("bare") + len(said["bare"].rstrip(".!?:"))


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def is_secret(name: str, value: str) -> bool:
    """Whether a value that has this name, as a whole, is one."""
    return _is_name_of_one(name) and quoted_is_secret(name, value)


@lru_cache(maxsize=1024)
def _is_name_of_one(name: str) -> bool:
    """The same names come again and again."""
    return bool(SECRET_KEY.fullmatch(name))


def _assigned(text: str, start: int, end: int, value: re.Match[str]) -> Span | None:
    name, quoted = text[start:end], value["quoted"]
    if name.lower() == "key" and not (name == "KEY" and text[start - 1] == "_" and mixed(quoted or value["bare"])):
        return None
    compared = value["sep"].strip() == "=="
    if quoted is not None:
        secret = quoted_is_secret(name, quoted) and (mixed(quoted) or not compared)
        return value.span("quoted") if secret else None
    if compared or (start and text[start - 1] in "$%{"):
        return None
    tight = value["sep"] in ("=", "=>")
    last = value["last"] is not None
    secret = _bare_is_secret(name, value["bare"], tight=tight, last=last)
    return value.span("bare") if secret else None


def _is_option(text: str, start: int) -> bool:
    """A double dash begins the word that ends with the name."""
    word = text[max(0, start - 40) : start].split()
    return bool(word) and not text[start - 1].isspace() and "--" in word[-1]


def quoted_is_secret(name: str, value: str) -> bool:
    """A literal under a secret's name, unless it is a placeholder or reads like a sentence."""
    rest = _SCHEME.sub("", value, count=1)
    if _hook(name, value):
        return True
    if name.lower().lstrip("_-") in _SHORT_NAMES:
        return len(rest) >= 12 and mixed(rest) and re.fullmatch(r"[\w.+/=:@-]+", rest) is not None
    sentence = any(map(str.isspace, rest)) and name.lower() not in ("passphrase", "mnemonic")
    return len(rest) >= 4 and not sentence and not HARMLESS.fullmatch(rest) and not template(rest)


def _hook(name: str, value: str) -> bool:
    """The address of a webhook is its secret."""
    last = value.rstrip("/").rpartition("/")[2]
    return "webhook" in name.lower() and "://" in value and len(last) >= 16 and mixed(last)


def expression(value: str) -> bool:
    """A name or a call; a token has long parts that no name has."""
    drawn = any(len(part) >= 20 and mixed(part) and part != part.lower() for part in re.split(r"[_.(\[]", value))
    return bool(_EXPRESSION.fullmatch(value)) and not drawn


def placeholder(value: str) -> bool:
    """It stands for a secret, and is none."""
    return bool(HARMLESS.fullmatch(value)) or template(value)


def template(value: str) -> bool:
    """Something is put into it later: `${TOKEN}`, `{{ token }}`."""
    return "${" in value or "{{" in value or "$(" in value


def _bare_is_secret(name: str, value: str, *, tight: bool, last: bool) -> bool:
    """`KEY=value` nearly always; with white space or a colon it may be prose or code, and must look like a secret."""
    rest = _SCHEME.sub("", value, count=1)
    if _hook(name, value):
        return True
    if HARMLESS.fullmatch(rest) or expression(rest) or template(rest):
        return False
    lower = name.lower()
    if lower.lstrip("_-") in _SHORT_NAMES or lower.endswith("url"):
        return len(rest) >= 12 and mixed(rest)
    if tight:
        return len(rest) >= 4 and (name.isupper() or not rest.lower().endswith(lower))
    if rest != value or (last and lower.startswith("pass")):
        return len(rest) >= 8
    return (len(rest) >= 6 and mixed(rest)) or (len(rest) >= 16 and rest.isdigit())


def mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _random(text: str) -> bool:
    """No path, no version, no number with a unit."""
    return "/" not in text and "." not in text and not re.fullmatch(r"[0-9]+[-A-Za-z]+|[A-Za-z_-]+[0-9]{1,4}", text)
