"""A finder of secrets by place: in URLs, headers, and files of known formats."""

import re
from collections.abc import Iterator

from workflows.secrets.spans import Span
from workflows.secrets.values import HARMLESS, expression, is_mixed, is_random, placeholder
from workflows.secrets.words import NAME

_NO_HOST = r"""\s/?#"'<>`\\"""
_URL_PASSWORD = re.compile(rf"://[^{_NO_HOST}:@]{{0,256}}:([^{_NO_HOST}]{{1,512}})(?=@[A-Za-z0-9\[])")
_URL_SLASHES = re.compile(r"://[A-Za-z0-9._%-]{1,64}:((?![0-9]{1,5}/)[^\s\"'<>`@\\]{4,128})(?=@[A-Za-z0-9\[])")
_URL_USER = re.compile(rf"://([^{_NO_HOST}:@]{{20,512}})(?=@[A-Za-z0-9\[])")
_URL_QUERY = re.compile(
    r"[?&;](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|awsaccesskeyid|code|auth|apikey|key"
    r"|access_key|sharedaccesskey|ticket|session|sid|jwt|assertion|client_assertion)=([A-Za-z0-9%+/=_.~-]{16,2000}+)",
    re.IGNORECASE,
)
_NO_URL = re.compile(
    r"(?<![\w/:.@+-])(?!(?i:mailto|from|to|cc|bcc|email|e-mail|mail|sips?|xmpp|acct|ssh|git|npm|docker|file|user|author|by"
    r"|contact|link|reply-to|port|at|version|image):)[A-Za-z][\w.-]{0,63}:([^\s:@/\"'<>`,;()\[\]{}]{6,128})"
    r"@(?=[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,6}(?::[0-9]{2,5}|\.[a-z]{2,10}|/))"
)

_HEADER = re.compile(
    r"(?i:authorization|x-amz-security-token|x-csrf-token|x-xsrf-token)\\*[\"']?"
    r"[ \t]*+(?:[:=][ \t]*+\\*[\"']?|,[ \t]*+\\*[\"'])"
    r"(?P<scheme>(?:(?i:bearer|basic|token|digest|negotiate|ntlm|apikey|key|oauth|hawk|sswS|bot|splunk|aws4-hmac-sha256"
    r"|sharedaccesssignature|sharedkey|githubapp|genie[k]ey|pat|jwt|dpop|mac)[ \t:]++)?)(?P<rest>[^\n\r\"'\\]{6,4000}+)"
)
_BEARER = re.compile(r"(?i:\b(bearer|basic|sharedkey|apikey)[ \t]++)([A-Za-z0-9._~+/:-]{12,}+={0,2})")
_SEVERAL = re.compile(
    r"(?i:authorization\\*[\"']?[ \t]*+[:=][ \t]*+\\*[\"']?(?:digest|oauth|hawk|mac|signature)[ \t]++)"
    r"(?=\w+=)([^\n\r]{6,4000}+)"
)
_PUT_TOGETHER = re.compile(
    r"(?i:\b(?:bearer|basic|token)[ \t]{0,2}[\"'][ \t]{0,2}[+.][ \t]{0,2}[\"'])([A-Za-z0-9._~+/=-]{12,2000})"
)
_COOKIE = re.compile(r"(?i:\bcookie2?[\"']?:[ \t]*+[\"']?)([^\s=;]{1,256}=[^\s;\n\"'][^\n\"']{2,}+)")
_CRYPT = re.compile(
    r"\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|argon2(?:id|i|d)|scrypt|pbkdf2-sha[0-9]{1,3})\$[A-Za-z0-9./$=,+-]{20,200}"
)
_DIGESTED = re.compile(
    r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{20,128}={0,2}|\b(?:pbkdf2|bcrypt|scrypt|argon2)_?[a-z0-9]{0,8}\$[0-9]{1,9}\$[A-Za-z0-9+/=.$]{20,200}"
)
_NETRC = re.compile(
    r"\b(?:machine|default|login|account)\b[^\n]{0,300}?(?:\s{1,20}(?:login|account)\s{1,8}\S{1,200})?\s{1,20}password\s{1,8}"
    r"(?!(?:for|is|of|to|in|on|and|or|with|from|must|was|when|if|that|has)\b)(\S{3,200})"
)
_DOCKER_AUTH = re.compile(
    r"[\"'](?:auth|identitytoken|registrytoken)\\*[\"'][ \t]*:[ \t]*\\*[\"']([A-Za-z0-9+/_.-]{8,4000}={0,2})"
)
_NPM_AUTH = re.compile(r"(?:^|[:\n])_(?:auth|authToken|password)[ \t]*=[ \t]*\"?([^\s\"$<{]{6,500})")
_XML = re.compile(
    rf"<(?:\w{{1,30}}:)?[\w.-]{{0,40}}?{NAME}(?:\s[^<>]{{0,200}})?>\s{{0,20}}(?:<!\[CDATA\[)?([^<>\s\]][^<>\n\]]{{3,500}})(?=\s{{0,20}}(?:\]\]>)?</)",
    re.IGNORECASE,
)
_NAME_VALUE = re.compile(
    rf"\b(?:\w{{0,9}}name|\w{{0,9}}key|id)\\*+[\"']?\s{{0,4}}[:=]\s{{0,4}}\\*+[\"']?[\w.:-]{{0,64}}?(?:{NAME}|_key)\\*+[\"']?\s{{0,40}}+,?\s{{0,40}}\\*+[\"']?(?:\w{{0,9}}value|default|string)\\*+[\"']?"
    r"\s{0,4}[:=]\s{0,4}\\*+[\"']?([^\s\"'<>\\]{4,500})",
    re.IGNORECASE,
)
_VALUE_NAME = re.compile(
    r"\b\w{0,9}value\\*+[\"']?\s{0,4}[:=]\s{0,4}\\*+[\"']?([^\s\"'<>\\,]{4,500}+)\\*+[\"']?\s{0,40}+,?\s{0,40}"
    rf"\\*+[\"']?\w{{0,9}}(?:name|key)\\*+[\"']?\s{{0,4}}[:=]\s{{0,4}}\\*+[\"']?[\w.:-]{{0,64}}?(?:{NAME}|_key)",
    re.IGNORECASE,
)
_TYPED = re.compile(r"\b(?:Secret(?:Str|Bytes)?|SecureString)\(b?[\"']([^\"'\n]{6,300})[\"']\)")
_HOOK = re.compile(
    r"/(?:hooks?|webhooks?|with/key)/(?:[\w.-]{1,40}/){0,4}?(?![a-z]+-[a-z]+-)(?=[\w-]{0,40}[0-9][\w-]{0,40}[0-9])"
    r"([A-Za-z0-9_-]{20,128})(?![\w-])"
)
_ENTRY = re.compile(
    rf"<(?:entry|add|property|param|setting|string)\s[^<>]{{0,80}}?(?:key|name)=[\"'][\w.:-]{{0,64}}?(?:{NAME}|_key)[\"'][^<>]{{0,40}}>([^<>]{{4,500}})<",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    rf"\b(?:variable|define|setenv|putenv|set|ENV|ARG)[ \t(]{{1,8}}[\"']?[\w.-]{{0,64}}?(?:{NAME}|_key|_salt)[\"']?"
    rf"(?:\s{{0,8}}\{{[^}}]{{0,300}}?default\s{{0,8}}=\s{{0,8}}[\"']|\s{{0,8}},\s{{0,8}}[\"']|[ \t]{{1,8}}[\"']?)"
    rf"([^\s\"'=${{}}][^\s\"'}}]{{5,500}})",
    re.IGNORECASE,
)
_MASKED = re.compile(
    r"(?:::add-mask::|##\[add-mask\]|##vso\[task\.setsecret[^\]\n]{0,80}\]|issecret=true[^\]\n]{0,80}\])[ \t]*[\"']?"
    r"([^\s\"'`$<{%][^\"'`\n]{2,500})"
)
_IN_FORM = re.compile(
    rf"\bname=\\*[\"'][\w.-]{{0,40}}?{NAME}\\*[\"'][^\n]{{0,100}}\r?\n\r?\n([^\s][^\r\n]{{3,500}})", re.IGNORECASE
)
_INPUT = re.compile(
    r"<input\b(?=[^<>]{0,300}?type=[\"']?password\b)[^<>]{0,300}?\bvalue=[\"']([^\"'<>]{3,300})[\"']", re.IGNORECASE
)
_SQL = re.compile(
    r"\b(?:identified by(?: password)?|(?:with|(?:role|user|login) \S{1,80})(?: encrypted)? password"
    r"|password for \S{1,80})\s{0,4}=?\s{0,4}(?:password)?\(?N?[\"']([^\"'\n]{3,300})[\"']",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"^[ \t]*(?:requirepass|masterauth|snmp-server community|enable (?:secret|password)(?: \d{1,2})?"
    r"|username \S{1,60} (?:password|secret)(?: \d{1,2})?|AUTH(?=[ \t]+\S*\d))[ \t]+[\"']?([^\s\"'$<{]{4,300})",
    re.MULTILINE,
)
_PAIR = re.compile(
    rf"[\[(]\s{{0,8}}[\"'][\w-]{{0,40}}?{NAME}[\"']\s{{0,8}},\s{{0,8}}[\"']([^\s\"'\n]{{8,300}})[\"']\s{{0,8}}[\])]",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"(?:\bauth|BasicAuth|Credentials?)\w{0,20}\s{0,2}=?\s{0,2}\(\s{0,8}[\"'][^\"'\n]{1,60}[\"']\s{0,8},\s{0,8}[\"']([^\"'\n]{8,300})[\"']\s{0,8}\)"
)
_SET = re.compile(rf"{NAME}\.set\([\"']([^\"'\n]{{8,300}})[\"']\)", re.IGNORECASE)
_JWK = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\\*\"\s{0,4}:\s{0,4}\\*\"([A-Za-z0-9_-]{20,2000})")


def places(text: str) -> Iterator[Span]:
    """Yield secrets in all known places; each pattern runs only if one of its hints occurs."""
    if "://" in text:
        yield from _addresses(text)
    if "@" in text:
        for part in _around(text, "@", 200):
            yield from (
                match.span(1)
                for match in _NO_URL.finditer(text, *part)
                if is_mixed(match[1]) and not placeholder(match[1])
            )
    if "=" in text:
        yield from (match.span(1) for match in _URL_QUERY.finditer(text) if _random(match[1]))
    if "$" in text or "{" in text:
        yield from (match.span() for rule in (_CRYPT, _DIGESTED) for match in rule.finditer(text))
    lower = text.lower()
    for rule in {rule: None for hint, rules in _HINTED if hint in lower for rule in rules}:
        yield from (match.span(1) for match in rule.finditer(text) if not placeholder(match[1]))
    for hints, rule in _LITERALS:
        if any(hint in lower for hint in hints):
            matches = (match for match in rule.finditer(text) if is_random(match[1]) and not placeholder(match[1]))
            yield from (match.span(1) for match in matches)
    yield from _headers(text, lower)


_LITERALS = (
    (('",', "',"), _PAIR),
    (("auth", "credential"), _LOGIN),
    ((".set(",), _SET),
    (("value",), _VALUE_NAME),
    (("secretstr(", "secretbytes(", "securestring(", "secret("), _TYPED),
    (("hook", "/with/key/"), _HOOK),
)
"""Patterns whose matches count only if the value looks random."""

_HINTED: tuple[tuple[str, tuple[re.Pattern[str], ...]], ...] = (
    ("password", (_NETRC,)),
    ("auth", (_NPM_AUTH,)),
    ('"kty', (_JWK,)),
    ("add-mask", (_MASKED,)),
    ("task.set", (_MASKED,)),
    ("form-data", (_IN_FORM,)),
    ("<input", (_INPUT,)),
    ("identified by", (_SQL,)),
    (" password", (_SQL, _SETTING)),
    ("requirepass", (_SETTING,)),
    ("auth ", (_SETTING,)),
    ("masterauth", (_SETTING,)),
    ("enable secret", (_SETTING,)),
    ("snmp-server", (_SETTING,)),
    ('auth"', (_DOCKER_AUTH,)),
    ('token"', (_DOCKER_AUTH,)),
    ("</", (_XML, _ENTRY)),
    ("value", (_NAME_VALUE,)),
    ("default", (_VARIABLE,)),
    ("define", (_VARIABLE,)),
    ("env", (_VARIABLE,)),
    ("set", (_VARIABLE,)),
    ("arg", (_VARIABLE,)),
)


def _around(text: str, sign: str, width: int) -> Iterator[Span]:
    """Yield the parts of the text around each occurrence of a hint."""
    at = text.find(sign)
    while at >= 0:
        begin = end = at
        while at >= 0 and at - width <= end:
            end = at + width
            at = text.find(sign, at + 1)
        yield max(0, begin - width), end


def _addresses(text: str) -> Iterator[Span]:
    for match in _URL_PASSWORD.finditer(text):
        if not (HARMLESS.fullmatch(match[1]) and not match[1].isalpha()):
            yield match.span(1)
    for match in _URL_SLASHES.finditer(text):
        if "/" in match[1] and is_mixed(match[1]):
            yield match.span(1)
    yield from (match.span(1) for match in _URL_USER.finditer(text) if is_mixed(match[1]))


def _headers(text: str, lower: str) -> Iterator[Span]:
    if "authorization" in lower or "-token" in lower:
        yield from (match.span(1) for match in _SEVERAL.finditer(text) if "[redacted]" not in match[1][:10])
        yield from (match.span(1) for match in _PUT_TOGETHER.finditer(text))
        for match in _HEADER.finditer(text):
            rest = match["rest"]
            word = rest.split(",")[0].split()[0] if rest.split(",")[0].split() else ""
            several = match["scheme"] and "=" in rest
            if placeholder(word) or (not match["scheme"] and expression(word)) or (" " in rest.strip() and not several):
                if not (match["scheme"] and is_mixed(word) and len(word) >= 12):
                    continue
                yield match.start("rest"), match.start("rest") + len(word)
            elif (
                several or len(word) >= 24 or (len(word) >= 8 and (is_mixed(word) or (match["scheme"] and _odd(word))))
            ):
                yield match.span("rest")
    if "bearer" in lower or "basic" in lower or "sharedkey" in lower or "apikey" in lower:
        for match in _BEARER.finditer(text):
            scheme, value = match.groups()
            if is_mixed(value) and (len(value) >= 16 if scheme.lower() != "basic" else value != value.lower()):
                yield match.span(2)
    if "cookie" in lower:
        yield from (match.span(1) for match in _COOKIE.finditer(text) if not placeholder(match[1].partition("=")[2]))


def _odd(text: str) -> bool:
    """Return whether a text has capitals inside a word, which ordinary words do not have."""
    return text != text.lower() and text != text.capitalize()


def _random(text: str) -> bool:
    return is_mixed(text) and (len(text) >= 20 or text != text.lower())
