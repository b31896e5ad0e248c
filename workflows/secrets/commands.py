"""A finder of secrets in command lines: the password arguments of programs."""

import re
from collections.abc import Iterator

from workflows.secrets.spans import Span
from workflows.secrets.values import placeholder

_WITH_P = [
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mariadb",
    "mongo",
    "mongosh",
    "mongodump",
    "sshpass",
    "7z",
    "oc",
    "unrar",
]
"""Programs whose `-p` option is a password, with or without a space. A number after `-p` is another program's port."""

_WORD = r"(?P<q>[\"'])?(?P<secret>[^\s\"'$<{|;&](?:(?(q)[^\"'\n]|[^\s\"'|;&])){2,200})"
_DRAWN = r"(?=[^\s]*[0-9])"
_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (tool, re.compile(rf"\b{tool}\b[^\n|;]{{0,200}}?\s{options}"))
    for tool, options in (
        ("curl", rf"(?:-[a-zA-Z]{{0,8}}u|--user|--proxy-user|-U)[ =]?[\"']?[^\s:\"'$<]{{0,100}}:{_WORD}"),
        ("curl", r"(?:-b|--cookie)[ =](?P<q>[\"']?)(?P<secret>[^\s\"'=]{1,100}=[^\"'\n]{4,500})"),
        ("curl", rf"--oauth2-bearer[ ]{_WORD}"),
        ("wget", rf"--(?:http-|ftp-|proxy-)?password[ =]{_WORD}"),
        ("http", rf"(?:-a|--auth)[ =]?[\"']?[^\s:\"'$<]{{0,100}}:{_WORD}"),
        *((tool, rf"-p(?! ?\d{{1,5}}\b)(?: {_DRAWN})?(?! ){_WORD}") for tool in _WITH_P),
        *((tool, rf"(?:-p|--password)[ =]{_WORD}") for tool in ("login", "az", "helm", "podman", "twine", "argocd")),
        *((tool, rf"-p{_DRAWN}{_WORD}") for tool in ("docker login", "podman login")),
        *((tool, rf"-p[ ]{_DRAWN}{_WORD}") for tool in ("rdesktop",)),
        *((tool, rf"-a[ ]{_WORD}") for tool in ("redis-cli",)),
        *((tool, rf"-[wW][ ]{_WORD}") for tool in ("ldapsearch", "ldapadd", "ldapmodify")),
        *(
            (tool, rf"-P[ ]?(?!\d{{1,5}}\b){_WORD}")
            for tool in ("zip", "unzip", "sqlcmd", "bcp", "ipmitool", "mosquitto_pub", "mosquitto_sub", "ssh-keygen")
        ),
        ("ssh-keygen", rf"-N[ ]{_WORD}"),
        *((tool, rf"-[AX][ ]{_WORD}") for tool in ("snmpwalk", "snmpget")),
        *((tool, rf"-U[ ]?[\"']?[^\s%]{{1,100}}%{_WORD}") for tool in ("smbclient",)),
        ("openssl", rf"(?:pass:){_WORD}"),
        ("openssl enc", rf"-k[ ]{_WORD}"),
        ("openssl passwd", rf"-[0-9a-z]{{1,5}}[ ]{_WORD}"),
        ("htpasswd", rf"-[a-zA-Z]*b[a-zA-Z]*[ ]\S{{1,200}}[ ]\S{{1,100}}[ ]{_WORD}"),
        ("keytool", rf"-(?:store|key)pass[ ]{_WORD}"),
        ("net", rf"use[ ]\S{{1,100}}[ ]\S{{1,100}}[ ]/user:\S{{1,100}}[ ]{_WORD}"),
        ("net user", rf"\w{{1,60}}[ ](?!/){_WORD}"),
        ("xfreerdp", rf"/p:{_WORD}"),
        ("sqlplus", rf"[\w.-]{{1,60}}/{_WORD}(?=@)"),
        ("lftp", rf"-u[ ][^\s,]{{1,60}},{_WORD}"),
        ("wpa_passphrase", rf"\S{{1,60}}[ ]{_WORD}"),
        ("nmcli", rf"password[ ]{_WORD}"),
        ("mysqladmin", rf"password[ ]{_WORD}"),
        ("rclone", rf"obscure[ ]{_WORD}"),
        ("ansible-vault", rf"encrypt_string[ ]{_WORD}"),
        ("vault", rf"login[ ](?!-)(?=\S*\d){_WORD}"),
        ("vault", rf"kv (?:put|patch)[ ]\S{{1,200}}(?:[ ]\S{{1,60}}){{0,10}}?[ ][\w.-]{{1,60}}={_WORD}"),
        ("kubectl", rf"create secret[ ][^\n|;]{{0,200}}?--from-literal[ =][\w.-]{{1,100}}={_WORD}"),
        ("heroku", rf"config:set[ ][\w-]{{1,60}}={_DRAWN}{_WORD}"),
        *((tool, rf"secrets? set[ ][\w-]{{1,60}}={_WORD}") for tool in ("fly", "flyctl", "doppler")),
        ("gh secret set", rf"(?:--body[ =]|-b ?){_WORD}"),
        ("snyk", rf"auth[ ](?!-){_DRAWN}{_WORD}"),
        ("cargo", rf"login[ ](?!-){_WORD}"),
        ("gem", rf"--key[ ]{_DRAWN}{_WORD}"),
        ("nuget", rf"-k[ ]{_WORD}"),
        ("poetry config", rf"(?:pypi-token\.\S{{1,60}}|http-basic\.\S{{1,60}}[ ]\S{{1,60}})[ ]{_WORD}"),
        ("sonar", rf"-Dsonar\.login={_DRAWN}{_WORD}"),
        ("redactor", rf"add[ ]{_WORD}"),
    )
)  # fmt: skip

_TAKES = re.compile(
    r"--password-stdin\b|--with-token\b|\bsecrets? (?:set|put)\b|\bvercel env add\b|\bchpasswd\b|\bpasswd\b(?![.:/])"
    r"|\bsudo (?:-[a-zA-Z-]+ )*-S\b|\bcryptsetup\b|\bkinit\b|--passphrase-fd\b|-pass(?:in|out)? stdin\b|\bop signin\b"
    r"|\bssh-add -(?=\s|\Z)|\bkubectl create secret\b|\bvault login -(?=\s|\Z)"
)
"""Commands that read a secret from standard input."""
_LITERAL = r"(?P<q>[\"'])?(?P<secret>(?!\$)(?(q)[^\"'\n]|[^\s\"'|<>;&$`]){4,300})(?(q)(?P=q))"
_PIPED = re.compile(
    r"(?:(?:echo|printf|Write-Output)(?:[ \t]+-[neE]{1,3})?[ \t]+(?:[\"']?%s(?:\\n)?[\"']?[ \t]+)?"
    r"|^(?:[$>#][ \t]*)?(?=[\"']))"
    rf"{_LITERAL}[ \t]*\|",
    re.MULTILINE,
)
_HERE = re.compile(rf"[^\n]{{0,200}}?<<<[ \t]*{_LITERAL}")
_DOCUMENT = re.compile(
    r"<<-?[ \t]*[\"']?(?P<end>\w{1,20})[\"']?[^\n]{0,300}\n[ \t]*(?P<secret>[^\s$][^\n]{2,300})\n[ \t]*(?P=end)\b"
)


def commands(text: str) -> Iterator[Span]:
    """Yield secrets in command lines; a rule runs only if its program is named."""
    if " " not in text:
        return
    lower = text.lower()
    for tool, rule in _COMMANDS:
        if tool in lower:
            yield from (match.span("secret") for match in rule.finditer(text) if not placeholder(match["secret"]))
    yield from _standard_input(text)


def _standard_input(text: str) -> Iterator[Span]:
    """Yield secrets that a pipe or a here-document passes to a program."""
    done = 0
    for gives in _GIVES.finditer(text):
        if gives.start() < done:
            continue
        begin, done = max(text.rfind("\n", 0, gives.start()) + 1, gives.start() - 400), _end_of_line(text, gives.end())
        if (takes := _TAKES.search(text, begin, done)) and (given := _passed_secret(text, begin, takes.span(), done)):
            yield given


_GIVES = re.compile(r"\||<<")


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at, at + 600)
    return end if end >= 0 else min(len(text), at + 600)


def _passed_secret(text: str, begin: int, takes: Span, end: int) -> Span | None:
    """Return the secret that a line passes to the program that reads it."""
    given = (
        _PIPED.search(text[: takes[0]], begin)
        or _HERE.match(text, takes[1], end)
        or _DOCUMENT.search(text[: end + 700], begin)
    )
    if not given or given.start() > end or placeholder(given["secret"]):
        return None
    return given.span("secret")
