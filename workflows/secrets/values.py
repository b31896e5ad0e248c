"""Classification of the values of names like `password`: secrets, placeholders, expressions and sentences."""

import re

from workflows.secrets.words import NO_PASSPHRASE, SHORT_NAMES

SCHEME = re.compile(r"(?i:bearer|basic|token|apikey)[ \t]++")
HARMLESS = re.compile(
    r"(?i:none|null|nil|true|false|undefined|str|string|int|bool|bytes|optional|required|missing|invalid|expired|empty"
    r"|unset|changeme|change[-_]me|example|placeholder|bearer|basic|token|password|passwd|secret|redacted|hidden|masked"
    r"|todo|tbd|n/a|erforderlich|ungültig|falsch|vergessen|fehlt|richiesta|obbligatoria|errata|same-origin|include|omit|x{3,}|\*+|\.{3,}|(?:•)+|your[_-]?.*|my[_-]?(?:secret|token|password|api[_-]?key)|<.*|\$.*|\{.*|%.*%"
    r"|(?:%[a-z]\W?)+|[0-9]{1,9}(?:\.[0-9]{1,9}){2,}|@.*@|[a-z+]+://[^@]*|(?:~|\.{0,2})/[\w.@-]+/.*|[a-z]:\\.*|\[redacted.*|(?:\w{1,12}:)?redacted-[0-9a-f]{20}|(?:env|file|arn|vault|op|secretref)[:.].*"
    r"|(?:[A-Z]{2,}[ _-]){0,3}(?:PASSWORD|PASSPHRASE|TOKEN|SECRET)"
    r"|(?:dummy|fake|sample|example|insert|enter|replace|put|the|some|any)[-_ ].*|#.*|!\w+)"
)
_EXPRESSION = re.compile(
    r"[A-Za-z_](?:[A-Za-z]*+_[A-Za-z_]++|[A-Za-z_]*+(?:(?:\??\.|->|::)\w++)+)[!;]?"
    r"|[A-Za-z_][\w.:>?!-]*[(\[].*|[\w.]+\|\|.*|!?!\w+"
)

_SHORT = re.compile(r"[\w.+/=:@-]+")
_PARTS = re.compile(r"[_.(\[]")
_MEASURE = re.compile(r"[0-9]+[-A-Za-z]+|[A-Za-z_-]+[0-9]{1,4}")


def quoted_is_secret(name: str, value: str) -> bool:
    """Return whether a literal under the name of a secret is really a secret, not a placeholder or a sentence."""
    rest = SCHEME.sub("", value, count=1)
    if _hook(name, value):
        return True
    if name.lower().lstrip("_-") in SHORT_NAMES:
        return len(rest) >= 12 and is_mixed(rest) and _SHORT.fullmatch(rest) is not None
    if any(map(str.isspace, rest)) and name.lower() not in ("passphrase", "mnemonic") and not _passphrase(name, rest):
        return False
    return len(rest) >= 4 and not HARMLESS.fullmatch(rest) and not template(rest)


def _passphrase(name: str, value: str) -> bool:
    """Return whether several words look like a passphrase, not a sentence. They do if there are four in lower case, if
    one looks random, or if the name is a variable's.
    """
    words = value.split()
    if len(words) > 12 or NO_PASSPHRASE & {word.lower().strip(".,:;!?") for word in words}:
        return False
    plain = len(words) >= 4 and all(word.isalpha() and word.islower() for word in words)
    return plain or (name.isupper() and value[0].isalnum()) or any(is_random(word) for word in words)


def _hook(name: str, value: str) -> bool:
    """Return whether the value is the URL of a webhook, which is a secret."""
    last = value.rstrip("/").rpartition("/")[2]
    return "webhook" in name.lower() and "://" in value and len(last) >= 16 and is_mixed(last)


def expression(value: str) -> bool:
    """Return whether the value is a name or a call in code. A token does not count: it has longer parts than any
    name.
    """
    drawn = any(len(part) >= 20 and is_mixed(part) and part != part.lower() for part in _PARTS.split(value))
    return bool(_EXPRESSION.fullmatch(value)) and not drawn


def placeholder(value: str) -> bool:
    """Return whether the value is a placeholder for a secret."""
    return bool(HARMLESS.fullmatch(value)) or template(value)


def template(value: str) -> bool:
    """Return whether the value is a variable to fill in, like `${TOKEN}` or `{{ token }}`."""
    return "${" in value or "{{" in value or "$(" in value


def bare_is_secret(name: str, value: str, *, tight: bool, last: bool) -> bool:
    """Return whether an unquoted value is a secret. In `KEY=value` it nearly always is. With white space or a colon,
    the text may be prose or code, so the value must look like a secret.
    """
    rest = SCHEME.sub("", value, count=1)
    if _hook(name, value):
        return True
    if HARMLESS.fullmatch(rest) or expression(rest) or template(rest):
        return False
    lower = name.lower()
    if lower.lstrip("_-") in SHORT_NAMES or lower.endswith("url"):
        return len(rest) >= 12 and is_mixed(rest)
    if tight:
        return len(rest) >= 4 and (name.isupper() or not rest.lower().endswith(lower))
    if rest != value or (last and lower.startswith("pass")):
        return len(rest) >= 8
    return (len(rest) >= 6 and is_mixed(rest)) or (len(rest) >= 16 and rest.isdigit())


def is_mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


_DRAWN = re.compile(r"[\w.+/=:@!#$%&*^~?-]{8,}")


def is_random(text: str) -> bool:
    """Return whether a text looks random: it has digits among letters of both cases, or is a long mixture."""
    if not is_mixed(text) or not _DRAWN.fullmatch(text) or not may_be_random(text):
        return False
    return (text != text.lower() and text != text.upper()) or len(text) >= 12


def may_be_random(text: str) -> bool:
    """Return whether a text could be random: it is no path, no version, and no number with a unit."""
    return "/" not in text and "." not in text and not _MEASURE.fullmatch(text)
