"""What secrets look like: a table of token forms, and of the names whose values are secret (ruling A12).

Every pattern is linear on hostile text: it begins with something literal, so that searching is a jump, and its
unbounded parts are possessive or end where the next attempt would begin.
"""

import re
from collections.abc import Iterator

_WORD = "[A-Za-z0-9_]"


def _token(prefix: str, body: str) -> re.Pattern[str]:
    """A token known by its prefix, which must not be the middle of a word: `task-...` holds no `sk-...`."""
    return re.compile(f"{prefix}(?<!{_WORD}{prefix}){body}")


def _tokens(prefixes: str, body: str) -> Iterator[re.Pattern[str]]:
    return (_token(prefix, body) for prefix in prefixes.split())


TOKENS: tuple[re.Pattern[str], ...] = (
    # GitHub and GitLab
    *_tokens("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"[A-Za-z0-9_]{20,}+"),
    *_tokens("glpat- gldt- glrt- glptt-", r"[A-Za-z0-9_-]{20,}+"),
    # OpenAI, Anthropic, OpenRouter, Hugging Face
    *_tokens("sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1-", r"[A-Za-z0-9_-]{20,}+"),
    _token("sk-", r"(?=[A-Za-z]*+[0-9])[A-Za-z0-9]{20,}+(?!-)"),
    _token("hf_", r"[A-Za-z0-9]{30,}+"),
    # AWS
    *_tokens("AKIA ASIA AROA AIDA AGPA ANPA ANVA ABIA ACCA", rf"[A-Z0-9]{{16}}(?!{_WORD})"),
    # Slack
    *_tokens("xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[A-Za-z0-9-]{10,}+"),
    _token(r"hooks\.slack\.com/services/", r"[A-Za-z0-9/_-]{20,}+"),
    # Google
    _token("AIza", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _token(r"ya29\.", r"[A-Za-z0-9_.-]{20,}+"),
    _token("GOCSPX-", r"[A-Za-z0-9_-]{20,}+"),
    # Package registries
    _token("npm_", r"[A-Za-z0-9]{36,}+"),
    _token("pypi-", r"AgE[A-Za-z0-9_-]{40,}+"),
    # Others whose form leaves no doubt
    *_tokens("sk_live_ sk_test_ rk_live_ rk_test_ lin_api_", r"[A-Za-z0-9]{16,}+"),
    *_tokens("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{40,}+"),
    _token("whsec_", r"[A-Za-z0-9+/]{24,}+={0,2}"),
    _token(r"hvs\.", r"[A-Za-z0-9_-]{24,}+"),
    _token(r"SG\.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _token("AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}+"),
    # JSON web tokens
    _token("eyJ", r"[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]*+){0,3}"),
)

_KEY_KIND = r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
PEM = re.compile(
    f"-----BEGIN {_KEY_KIND}"
    # To its end, or as far as it looks like one when the end is cut off.
    rf"(?:(?:[^-]++|-(?!----))*+-----END {_KEY_KIND}|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/]{{24,}}+={{0,2}})++)"
)

_NO_HOST = r"""\s/?#"'<>`"""
URL_PASSWORD = re.compile(rf"(://[^{_NO_HOST}:@]{{0,256}}:)([^{_NO_HOST}]{{1,512}})(?=@[A-Za-z0-9\[])")
URL_USER = re.compile(rf"(://)([^{_NO_HOST}:@]{{20,512}})(?=@[A-Za-z0-9\[])")

BEARER = re.compile(r"(?i:\b(bearer|basic)\s++)([A-Za-z0-9._~+/-]{12,}+={0,2})")
COOKIE = re.compile(r"(?i:\bcookie[\"']?:[ \t]*+[\"']?)([^\s=;]{1,256}=[^\n\"']{3,}+)")

_NAME = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|authorization"
    r"|(?:api|access|private|secret|encryption|signing|master|deploy|account|auth|ssh)[_-]?key)"
    r"(?:[_-]?(?:access|key|base|value|prod|production|dev|test|staging|live|main|b64|base64|hex|[0-9]{1,4})){0,3}"
)
HINTS = ("pass", "pwd", "secret", "token", "credential", "authorization", "key")
"""A line without any of these, in lower case, has no secret's name in it."""
NAMED = re.compile(
    rf"(?P<head>(?i:(?P<name>{_NAME}))\\?[\"'`]?(?P<sep>[ \t]*+(?:=>|:=|=|:)[ \t]*+))"
    r"(?:(?P<quote>\\?[\"'])(?P<quoted>(?:(?!(?P=quote))(?:[^\n\\]|\\.))*+)(?=(?P=quote))"
    r"|(?P<bare>(?:(?i:bearer|basic|token)[ \t]++)?[^\s\"'`,;&)}\]<>|\\]{3,}+)(?P<last>[ \t\r]*+\Z)?)"
)
OPTION = re.compile(rf"(?i:{_NAME})[ \t]++(?P<bare>[^-$<{{\[(\s\"'`][^\s\"'`]{{5,}}+)")
"""A command's option, if a double dash begins the word that ends with the name."""
SECRET_KEY = re.compile(rf"(?is:.*{_NAME})")

SCHEME = re.compile(r"(?i:bearer|basic|token)[ \t]++")
HARMLESS = re.compile(
    r"(?i:none|null|nil|true|false|undefined|str|string|int|bool|bytes|optional|required|missing|invalid|expired|empty"
    r"|unset|changeme|example|placeholder|bearer|basic|token|password|secret|x{3,}|\*+|\.{3,}|your[_-].*|<.*|\$.*|\{.*"
    r"|%.*%|[a-z]+://.*|(?:~|\.{0,2})/[\w.-]+/.*|\[redacted.*)"
)
EXPRESSION = re.compile(r"[A-Za-z_]+(?:_[A-Za-z_]+|\.\w+)+|[A-Za-z_][\w.]*[(\[].*")
