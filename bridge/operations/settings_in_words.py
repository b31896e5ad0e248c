"""Each setting as a sentence with its unit, for people who do not know its name (rulings K4, M4)."""

import re
import tomllib
from typing import NamedTuple

Sentences = tuple[str, str]
"""A sentence with `{}` for the value, and the one for a value that is empty, zero or false."""


class SettingSentence(NamedTuple):
    """A setting's sentence: the words before its value, the value, the words behind it."""

    before: str
    value: str = ""
    after: str = ""


_BOUNDS: dict[str, Sentences] = {
    "max_delegation_depth": ("A task may be handed on {} levels deep.", ""),
    "max_delegation_total_jobs": ("A task may run {} jobs in all.", ""),
    "max_delegation_wall_clock": ("A task may take {}; waiting for people does not count.", ""),
    "max_delegation_width": ("A batch may have {} parts.", ""),
    "max_delegation_token_budget": ("A task may use {} tokens.", "A task has no limit of tokens."),
    "max_delegation_cost_usd": ("A task may cost ${}.", "A task has no limit of dollars."),
    "max_delegation_non_progress_streak": ("A task asks you after {} batches in a row that achieved nothing.", ""),
    "max_verify_replan_attempts": (
        "A rejected result is planned again {} times.",
        "A rejected result is not planned again.",
    ),
    "escalation_ttl": ("A question waits {} for your answer.", ""),
    "escalation_handle": ("Questions are addressed to {}.", "Questions are addressed to nobody in particular."),
    "inline_artifact_bodies": ("Prompts contain long results whole.", "Prompts name long results by their file."),
    "merge": ("Finished work: {} (ask: you merge it; line: the task's branch moves by itself).", ""),
} | {
    f"default_{what}_timeout": (
        f"{name} may take {{}} if nothing else is asked.",
        f"{name} {verb} no time limit unless one is asked.",
    )
    for what, name, verb in (
        ("plan", "Planning", "has"),
        ("implement", "Writing changes", "has"),
        ("review", "A review", "has"),
        ("gate", "A check", "has"),
        ("repair", "A repair", "has"),
        ("delegation", "Any other part", "has"),
    )
}
_RUNTIME: dict[str, Sentences] = {
    "adapter": ("It is driven as {}.", "It is driven by its own program."),
    "command": ("It is started as {}.", "It is started by its name on the PATH."),
    "arguments": ("It is also given the arguments {}.", "It is given no further arguments."),
    "default_model": ("It uses the model {}.", "It uses its own default model."),
    "default_effort": ("It works with the effort {}.", "It works with its own default effort."),
    "max_parallel": ("It runs {} jobs at once on this machine.", "It has no limit of its own for jobs at once."),
    "env": ("It also sees the variables {}.", "It sees only the usual variables."),
    "mcp_servers": ("Its jobs have the MCP servers {}.", "Its jobs have no MCP servers."),
    "modes": ("By ACP, its session modes are {}.", "By ACP, it works in its own session mode."),
    "renew_login": (
        "Its login is renewed before it expires.",
        "Its login is not renewed by the service.",
    ),
    "structured": (
        "Its agents are held to the form of a result: {} (auto: those of claude).",
        "Its agents are not held to the form of a result.",
    ),
    "rate_limit_retries": ("At a rate limit it tries {} more times.", "At a rate limit it fails at once."),
    "rate_limit_backoff": ("At a rate limit it first waits {}.", ""),
    "rate_limit_wait": ("At a rate limit it waits {} at most.", ""),
    "network_retries": ("Without a network it tries {} more times.", "Without a network it fails at once."),
    "network_backoff": ("Without a network it first waits {}.", ""),
    "box": ("Its box is {}.", ""),
    "network": (
        "In its box the network reaches {}.",
        "In its box the network reaches its model only; that of a shell agent reaches all.",
    ),
    "hosts": ("It may also reach {}.", "It may reach no other hosts."),
    "read": ("It may also read {}.", "It may read nothing outside its worktree and the system."),
    "write": ("It may also change {}.", "It may change nothing outside its worktree."),
}
SENTENCES: dict[str, dict[str, Sentences]] = {
    "orchestrate": _BOUNDS,
    "runtimes": _RUNTIME,
    "prices": {
        "input": ("A million tokens read cost ${}.", "Tokens read cost nothing."),
        "output": ("A million tokens written cost ${}.", "Tokens written cost nothing."),
    },
    "temporal": {
        "mode": ("The Temporal server is {} (auto: in this home, unless an address is set).", ""),
        "address": ("The Temporal server is at {}.", "The Temporal server is the one in this home."),
        "namespace": ("Its namespace is {}.", ""),
        "profile": ("The connection is the profile {} of Temporal's own settings.", "The connection has no profile."),
        "port": ("It listens on port {}.", ""),
        "ui_port": ("Port {} is not used any more: the dashboard serves Temporal's pages.", ""),
        "task_queue": ("Work is queued as {}.", ""),
        "by_hand": (
            "Orders from Temporal's own tools are accepted: {}.",
            "Orders from Temporal's own tools are refused.",
        ),
        "encrypt": ("What Temporal keeps is encrypted.", "What Temporal keeps is not encrypted."),
        "web_ui": ("Temporal's pages at {} may ask for decrypted content.", "No foreign page of Temporal may decrypt."),
    },
    "store": {
        "url": ("Records are in the database {}.", "Records are in a file of this home."),
        "pool": ("This host uses up to {} connections to PostgreSQL.", ""),
    },
    "artifacts": {"url": ("{} is not used any more.", "Long texts are in the store.")},
    "worker": {
        "host": ("This machine is called {}.", "This machine is called by its host name."),
        "labels": ("This machine has the labels {}.", "This machine has no labels of its own."),
        "max_parallel_jobs": ("This machine runs {} jobs at once.", ""),
        "max_parallel_per_repo": (
            "It runs {} jobs at once in one repository.",
            "It has no limit of its own for jobs in one repository.",
        ),
        "stop_grace": ("A job that is stopped has {} to end by itself.", "A job that is stopped is killed at once."),
        "agents_uid": ("If the service runs as root, agents run as the account {}.", ""),
        "agents_memory": ("All agents together may use {} % of the memory.", "All agents may use all memory."),
        "job_memory": ("A job may use {} % of the memory.", "A job may use what all agents may."),
        "job_pids": ("A job may have {} processes and threads.", ""),
        "job_disk": ("A job may write {} GiB.", "A job may write without a limit."),
        "free_disk": ("Nothing starts with less than {} GiB free on the disk.", "Jobs start however full the disk is."),
        "keep_runs": ("Prompts and whole outputs are kept for {}.", "Prompts and outputs are not kept."),
        "metrics": ("Metrics are offered at {}.", "No metrics are offered."),
    },
    "notify": {
        "log": ("Notifications are written to notifications.jsonl.", "Notifications are not written to a file."),
        "command": ("Each notification runs {}.", "Notifications run no command."),
        "webhook_url": ("Each notification is posted to {}.", "Notifications are posted nowhere."),
        "webhook_secret_env": ("They are signed with the variable {}.", "They are not signed."),
    },
    "bridge": {
        "enabled": ("The dashboard and the HTTP interface run.", "The dashboard and the HTTP interface do not run."),
        "addr": ("They listen on {}.", ""),
        "port": ("They listen on port {}.", ""),
        "allow_remote": ("Other machines may connect.", "Only this machine may connect."),
        "allowed_hosts": ("They may also be called {}.", "They may be called by the usual names only."),
        "url": ("People find the dashboard at {}.", "People find the dashboard where it listens."),
        "requests_per_minute": ("A caller may make {} requests a minute.", ""),
    },
    "github": {
        "token_env": ("The GitHub account's token is in the variable {}.", "No GitHub account by token."),
        "app_id": ("The GitHub App has the id {}.", "No GitHub App."),
        "installation_id": ("Its installation has the id {}.", "It has no installation."),
        "private_key_file": ("Its private key is in {}.", "It has no private key."),
        "api_url": ("GitHub is asked at {}.", ""),
        "repos": ("It serves {}.", "It serves all registered repositories with a GitHub name."),
        "comments": ("Comments are written: {}.", ""),
        "commands": ("Comments may order {}.", "Comments order nothing."),
        "check": ("Pull requests get the check service/gate.", "Pull requests get no check."),
        "publish": ("Finished work becomes a pull request: {}.", ""),
        "poll": ("Comments are read every {}.", ""),
        "webhook_secret_env": ("The webhook's secret is in the variable {}.", "There is no webhook: GitHub is polled."),
    },
    "git": {
        "hub": ("Hosts exchange commits through {}.", "Hosts exchange commits through each repository's remote."),
        "hub_branches": ("Work is pushed to branches service/….", "Work is pushed to references that no forge runs."),
        "build_products": ("What builds leave is committed.", "What builds leave is not committed."),
    },
    "fleet": {
        "move_after": ("A lost host's jobs go on elsewhere after {}.", "A lost host's jobs wait for it."),
    },
}
_UNITS = {"s": "s", "m": "min", "h": "h", "d": "days"}


def sentence(section: str, key: str, value: str) -> SettingSentence:
    """Return the sentence for a value as the settings file has it."""
    given = tomllib.loads(f"value = {value}")["value"]
    by_value, without = SENTENCES[section.partition(".")[0]][key]
    if without and not (given and given != "0"):
        return SettingSentence(without)
    before, _, after = by_value.partition("{}")
    if given == 1:
        after = re.sub(r"^( more)? (\w+?)(?:(?<=ch)es|s)\b", r"\1 \2", after)
    return SettingSentence(before, _in_words(given), after) if "{}" in by_value else SettingSentence(by_value)


def _in_words(given: object) -> str:
    if isinstance(given, list):
        return ", ".join(map(str, given))
    if isinstance(given, float):
        return f"{given:g}"
    text = str(given)
    if re.fullmatch(r"(\d{1,9}[smhd]){1,9}", text):
        parts = re.findall(r"(\d{1,9})([smhd])", text)
        return " ".join("1 day" if part == ("1", "d") else f"{part[0]} {_UNITS[part[1]]}" for part in parts)
    return text
