"""Finds secrets in command lines: what stands where a program takes a password."""

import re
from collections.abc import Iterator

from workflows.contract.secret_names import placeholder
from workflows.contract.secret_spans import Span

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
"""Their `-p` is a password, with or without a space; a number behind it is a port of another program."""

_WORD = r"(?P<q>[\"']?)(?P<secret>[^\s\"'$<{|;&][^\s\"'|;&]{2,200})"
_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (tool, re.compile(rf"\b{tool}\b[^\n|;]{{0,200}}?\s{options}"))
    for tool, options in (
        ("curl", rf"(?:-[a-zA-Z]{{0,8}}u|--user|--proxy-user|-U)[ =]?[\"']?[^\s:\"'$<]{{0,100}}:{_WORD}"),
        ("curl", r"(?:-b|--cookie)[ =](?P<q>[\"']?)(?P<secret>[^\s\"'=]{1,100}=[^\"'\n]{4,500})"),
        ("wget", rf"--(?:http-|ftp-|proxy-)?password[ =]{_WORD}"),
        ("http", rf"(?:-a|--auth)[ =]?[\"']?[^\s:\"'$<]{{0,100}}:{_WORD}"),
        *((tool, rf"-p(?! ?\d{{1,5}}\b)(?: (?=[^\s]*\d))?(?! ){_WORD}") for tool in _WITH_P),
        *((tool, rf"(?:-p|--password)[ =]{_WORD}") for tool in ("login", "az", "helm", "podman", "twine", "argocd")),
        *((tool, rf"-a[ ]{_WORD}") for tool in ("redis-cli",)),
        *((tool, rf"-[wW][ ]{_WORD}") for tool in ("ldapsearch", "ldapadd", "ldapmodify")),
        *((tool, rf"-P[ ]?(?!\d{{1,5}}\b){_WORD}") for tool in ("zip", "unzip", "sqlcmd", "bcp")),
        ("smbclient", rf"-U[ ]?[^\s%]{{1,100}}%{_WORD}"),
        ("openssl", rf"(?:pass:){_WORD}"),
        ("htpasswd", rf"-[a-zA-Z]*b[a-zA-Z]*[ ]\S{{1,200}}[ ]\S{{1,100}}[ ]{_WORD}"),
        ("keytool", rf"-(?:store|key)pass[ ]{_WORD}"),
        ("net", rf"use[ ]\S{{1,100}}[ ]\S{{1,100}}[ ]/user:\S{{1,100}}[ ]{_WORD}"),
        ("xfreerdp", rf"/p:{_WORD}"),
    )
)  # fmt: skip


def commands(text: str) -> Iterator[Span]:
    """Looked for only where the program is named."""
    if " " not in text:
        return
    lower = text.lower()
    for tool, rule in _COMMANDS:
        if tool in lower:
            yield from (found.span("secret") for found in rule.finditer(text) if not placeholder(found["secret"]))
