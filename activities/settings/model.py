"""The schema of `config.toml` (ruling K4): every key, its default and its meaning."""

import re
import socket
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from activities.runtimes import programs
from activities.runtimes.known_runtimes import ACP, BY_ACP, DRIVEN, RUNTIMES, SCRIPT, SHELL, program_of, runtime_of
from activities.settings.values import (
    AdapterName,
    AllowedHost,
    Away,
    BoxPath,
    Duration,
    Label,
    Listener,
    NoObjectStore,
    RepositoryUrl,
    Timeout,
    VariableName,
    WebOrigin,
)
from workflows.contract.faults import did_you_mean
from workflows.contract.models import AutonomyPolicy, Tier
from workflows.model.errors import UsageError
from workflows.model.settings import Bounds, RuntimeDefaults, Timeouts, TreeSettings
from workflows.policy import tiers
from workflows.policy.prices import TIER

_BOUNDS, _TREE = Bounds(), TreeSettings()
"""A tree's defaults, as its rules define them."""


class Section(BaseModel):
    """A strict section: an unknown key is an error, and so is a number in quotes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Orchestrate(Section):
    """`[orchestrate]`: the limits of a tree."""

    max_delegation_depth: int = Field(default=_BOUNDS.max_delegation_depth, ge=1)
    max_delegation_total_jobs: int = Field(default=_BOUNDS.max_delegation_total_jobs, ge=1)
    max_delegation_wall_clock: Duration = _BOUNDS.max_delegation_wall_clock_seconds
    max_delegation_width: int = Field(default=_BOUNDS.max_delegation_width, ge=1)
    max_delegation_token_budget: int = Field(default=_BOUNDS.max_delegation_token_budget, ge=0)
    max_delegation_cost_usd: float = Field(default=_BOUNDS.max_delegation_cost_usd, ge=0)
    max_delegation_non_progress_streak: int = Field(default=_BOUNDS.max_delegation_non_progress_streak, ge=1)
    max_verify_replan_attempts: int = Field(default=_BOUNDS.max_verify_replan_attempts, ge=0)
    escalation_ttl: Duration = _TREE.escalation_ttl_seconds
    escalation_handle: str = ""
    inline_artifact_bodies: bool = _TREE.inline_artifact_bodies
    merge: Literal["ask", "line"] = "ask"
    """`ask`: people merge a tree's work. `line`: its task branch gets the work when the tree ends (ruling O6)."""
    default_plan_timeout: Timeout = None
    default_implement_timeout: Timeout = None
    default_review_timeout: Timeout = None
    default_gate_timeout: Timeout = None
    default_repair_timeout: Timeout = None
    default_delegation_timeout: Timeout = None


class RuntimeSection(Section):
    """`[runtimes.<name>]`: a runtime's program, and its defaults for delegations and agents."""

    adapter: AdapterName = ""
    """Empty: the runtime's own program. `script`: the command speaks the shell protocol in the runtime's place.
    `acp`: it speaks the Agent Client Protocol (ruling S7).
    """
    command: list[str] = []
    """The program's command, if it is not on the PATH under its own name."""
    arguments: list[str] = []
    """Further arguments, after the adapter's own."""
    default_model: str = ""
    default_effort: str = ""
    tiers: dict[Tier, str] = {}
    """The models that the words `mechanical`, `cheap` and `deep` stand for, if not the program's known ones."""
    max_parallel: int = Field(default=0, ge=0)
    """Limit of this runtime's concurrent runs on a host; 0 is no limit."""
    env: list[str] = []
    """Names of variables passed to the agent, besides the fixed allow-list."""
    mcp_servers: list[str] = []
    """Names of the MCP servers in the program's own settings that its jobs may use; others are left out."""
    modes: dict[AutonomyPolicy, str] = {}
    """The session mode for each policy, of a program that speaks ACP; without one, the program's own default."""
    renew_login: bool = True
    """True: the operator's own program is started to renew its login when that is about to expire."""
    structured: bool | Literal["auto"] = "auto"
    """True: the program holds its agent to the result's schema (ruling S6). `auto`: claude does, codex doesn't."""
    rate_limit_retries: int = Field(default=8, ge=0)
    """Retries of a run that met a rate limit or a used-up quota; 0: none."""
    rate_limit_backoff: Duration = 60.0
    """The first wait if the program doesn't say when the limit ends; each further wait is twice as long."""
    rate_limit_wait: Duration = 21_600.0
    """The longest wait; a limit that lasts longer fails the job."""
    network_retries: int = Field(default=3, ge=0)
    """Retries of a run whose model could not be reached."""
    network_backoff: Duration = 15.0
    """The first wait for the network; each further wait is twice as long."""
    box: Literal["auto", "bwrap", "none"] = "auto"
    """`auto` or `bwrap`: run agents in bubblewrap's box, or not at all if a trial finds that it doesn't confine them.
    `none`: no box.
    """
    network: Literal["", "none", "model", "full"] = ""
    """The network in the box: `none`, `model` or `full`. Empty: `model`; for shell agents and scripts with the host
    `*`.
    """
    hosts: list[AllowedHost] = []
    """With the network `model`, hosts to reach besides those of the program's maker: `name`, `name:port`, `*.name`,
    `*`.
    """
    read: list[BoxPath] = []
    """Folders and files outside the system that agents may read in the box: tools, caches."""
    write: list[BoxPath] = []
    """Folders that agents may also change."""

    @field_validator("box", mode="before")
    @classmethod
    def _is_no_box_of_0_2_0(cls, box: object) -> object:
        if box == "landlock":
            raise ValueError('landlock is gone: write "auto" for bubblewrap\'s box, or "none" for no box')
        return box

    @model_validator(mode="after")
    def _has_a_command(self) -> Self:
        if self.adapter in (SCRIPT, ACP) and not self.command:
            raise ValueError(f"adapter {self.adapter} needs a command")
        if self.adapter == SCRIPT and self.arguments:
            raise ValueError("adapter script takes no arguments beside its command")
        return self


class Temporal(Section):
    """`[temporal]`: the server. `embedded` runs one in the service home; an address means a foreign one."""

    mode: Literal["auto", "embedded", "external"] = "auto"
    address: str = ""
    namespace: str = "service"
    profile: str = ""
    port: int = Field(default=7233, ge=1, le=65535)
    ui_port: int = Field(default=8233, ge=1, le=65535)
    """Without effect: the bridge serves the web UI, on its own port."""
    task_queue: str = "service"
    by_hand: bool | Literal["auto"] = "auto"
    """Accept `resume`, `kill` and `cancel` from Temporal's own web UI and command line, for work that starts after the
    change. `auto`: unless agents can reach the server, by `network = "full"` or `box = "none"`.
    """
    encrypt: bool = False
    """Encrypt payloads for Temporal; earlier ones stay readable."""
    web_ui: WebOrigin = ""
    """The web UI of a foreign cluster: its pages may ask the bridge to decrypt."""


class Store(Section):
    """`[store]`: a database URL; empty means the SQLite file in the service home."""

    url: str = ""
    pool: int = Field(default=4, ge=4, le=400)
    """The most connections to PostgreSQL from this host's processes: half for the worker, one for the GitHub process,
    the rest for the bridge.
    """


class ArtifactsSection(Section):
    """`[artifacts]`: long texts and results, where several hosts share a PostgreSQL store."""

    url: NoObjectStore = ""
    """Without effect: the database has all content."""


class WorkerSection(Section):
    """`[worker]`: the limits of one host, and how an agent is stopped."""

    host: str = ""
    """This machine's name in task queues; empty means its host name."""
    labels: list[Label] = []
    """Properties of this host that others may lack, such as `gpu`: repositories, agents and stages can require them."""
    max_parallel_jobs: int = Field(default=8, ge=1, le=256)
    max_parallel_per_repo: int = Field(default=0, ge=0)
    """Limit of concurrent runs on one repository on this host; 0 is no limit."""
    stop_grace: Duration = 10.0
    """Time from the order to stop to the kill; half of it for SIGINT, half for SIGTERM."""
    agents_uid: int = Field(default=64_100, ge=1, lt=2**32 - 1)
    """The account of agents' programs in their boxes if the service runs as root."""
    agents_memory: int = Field(default=80, ge=0, le=100)
    """Percent of this machine's memory for all agents together, where it has control groups; 0: all of it."""
    job_memory: int = Field(default=50, ge=0, le=100)
    """Percent of this machine's memory for each job; 0: all that `agents_memory` allows."""
    job_pids: int = Field(default=4096, ge=64)
    """Limit of each job's processes and threads, where this machine has control groups."""
    job_disk: int = Field(default=50, ge=0, le=1_000_000)
    """GiB that a job may write, in all and to one file; a job that writes more is ended. 0: no limit."""
    free_disk: float = Field(default=0.5, ge=0, le=1_000_000)
    """With fewer GiB free on the home's disk, no run starts; with less than half of it, the run that wrote most is
    ended.
    """
    keep_runs: Duration = 14 * 86_400.0
    """Retention of the prompt and the whole output of a recorded run; the record itself stays."""
    metrics: Listener = ""
    """Address, such as 127.0.0.1:9464, where the worker offers the metrics of Temporal's SDK; empty: nowhere."""


class BridgeSection(Section):
    """`[bridge]`: the HTTP interface."""

    enabled: bool = True
    """Whether `service daemon` runs the bridge."""
    addr: str = "127.0.0.1"
    port: int = Field(default=8791, ge=1, le=65535)
    allow_remote: bool = False
    """Allow addresses other than loopback: the bridge speaks plain HTTP."""
    allowed_hosts: list[str] = []
    """Further host names by which requests may address the bridge (ruling J12)."""
    url: WebOrigin = ""
    """The dashboard's URL for people, if it is not where the bridge listens: a proxy's or a tunnel's."""
    requests_per_minute: int = Field(default=30, ge=1)


class NotifySection(Section):
    """`[notify]`: the channels of notifications."""

    log: bool = True
    """Write each notification as a line of JSON to `notifications.jsonl` in the service home."""
    command: list[str] = []
    """Command to run for each notification, with the message on standard input."""
    webhook_url: str = Field(default="", pattern=r"^$|^https?://[^/\s?#][^\s]*$")
    webhook_secret_env: str = ""
    """Name of the variable with the secret that signs webhooks; the secret itself is in no file."""

    def secret(self, environ: Mapping[str, str]) -> str:
        """Return the webhook's signing secret. Refuse a webhook without one: its notifications could be forged."""
        secret = environ.get(self.webhook_secret_env, "") if self.webhook_secret_env else ""
        if self.webhook_url and not secret:
            name = self.webhook_secret_env or "SERVICE_WEBHOOK_SECRET"
            setting = "" if self.webhook_secret_env else f'set webhook_secret_env = "{name}" in [notify], then '
            raise UsageError(
                "[notify].webhook_url is set, and no secret is there to sign what is posted to it",
                f"{setting}export {name}=A_LONG_RANDOM_TEXT where the daemon starts",
            )
        return secret


GITHUB = "https://api.github.com"
TOKENS = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")
"""Prefixes of GitHub's tokens."""


class Github(Section):
    """`[github]`: the account that reads and writes pull requests and issues; without one, GitHub is not used."""

    token_env: VariableName = ""
    """Name of the variable with the account's token, in the daemon's environment; never the token itself."""
    app_id: str = ""
    """A GitHub App in place of a token: its id, ..."""
    installation_id: str = ""
    """... the id of its installation, ..."""
    private_key_file: str = ""
    """... and the file with its private key, readable by its owner alone."""
    api_url: str = Field(default=GITHUB, pattern=r"^https?://[^/\s?#@]+(/[^\s?#@]*[^/\s?#@])?$")
    """For GitHub Enterprise: `https://HOST/api/v3`."""
    repos: list[str] = []
    """The registered repositories that GitHub is used for; empty: all with a known GitHub name."""
    comments: Literal["all", "pauses", "never"] = "all"
    """Comments to write. `all`: about a tree's state, pauses and end; `pauses`: only those that ask people; `never`:
    none.
    """
    commands: list[Literal["resume", "status", "ask", "review", "implement", "kill", "retry"]] = ["resume", "status"]
    """Orders that people with write access may give in comments."""
    check: bool = False
    """Publish the merge gate's verdict as the check `service/gate` on the head of a tree's pull request."""
    publish: Literal["never", "on_success"] = "never"
    """Publish the work of a tree that ended well as a pull request."""
    poll: Annotated[Duration, Field(ge=20, le=3600)] = 20.0
    """Polling interval of comments while people can answer or order something; polls without news cost no quota."""
    webhook_secret_env: VariableName = ""
    """Name of the variable with the webhook's secret, in the daemon's environment; without one, comments are only
    polled.
    """

    @property
    def is_configured(self) -> bool:
        """Return whether there is an account."""
        return bool(self.token_env or self.app_id)

    @property
    def web(self) -> str:
        """Return the web address of the repositories, for people and git."""
        return "https://github.com" if self.api_url == GITHUB else self.api_url.removesuffix("/api/v3")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the variables that only the GitHub process may see."""
        return tuple(name for name in (self.token_env, self.webhook_secret_env) if name)

    @field_validator("token_env", "webhook_secret_env")
    @classmethod
    def _is_no_token(cls, name: str) -> str:
        """Refuse a token in place of a variable's name. Don't show it: the message appears in terminals and logs."""
        if name.startswith(TOKENS):
            raise ValueError("it is a token, not the name of the variable that holds one; revoke it and make another")
        return name

    @model_validator(mode="after")
    def _is_one_account(self) -> Self:
        app = (self.app_id, self.installation_id, self.private_key_file)
        if any(app) and not all(app):
            raise ValueError("a GitHub App needs app_id, installation_id and private_key_file")
        if self.token_env and self.app_id:
            raise ValueError("set token_env or the three keys of a GitHub App, not both")
        if self.token_env and self.token_env == self.webhook_secret_env:
            raise ValueError("token_env and webhook_secret_env are two secrets: the bridge is never handed the token")
        return self


class Git(Section):
    """`[git]`: how hosts exchange the commits of repositories that have a remote."""

    hub: RepositoryUrl = ""
    """URL or path of a bare repository of your own, through which hosts exchange commits; empty: each repository's
    remote.
    """
    hub_branches: bool = False
    """Push work to branches `service/...` if a remote accepts no other references; its forge may run CI on them."""
    build_products: bool = False
    """Also commit build products (`__pycache__`, `node_modules`) that the repository does not ignore."""


class Price(Section):
    """`[prices."<model pattern>"]`, `[prices."tier:<tier>"]`: dollars per million tokens (ruling K5)."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Fleet(Section):
    """`[fleet]`: several hosts with one store."""

    move_after: Away = 600.0
    """Time without a sign of life from a host after which its jobs continue on other hosts; "0": never."""


_PLAIN = RuntimeSection()
_OWN_RUNTIME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}"


def _runtime_names(value: dict[str, "RuntimeSection"]) -> dict[str, "RuntimeSection"]:
    own = sorted(set(value) - {*RUNTIMES, *BY_ACP})
    if unknown := [name for name in own if value[name].adapter != ACP]:
        known = ", ".join((*RUNTIMES, *BY_ACP))
        raise ValueError(f'{unknown[0]} is not a runtime; the runtimes are {known}, and with adapter = "acp" your own')
    if bad := [name for name in own if not re.fullmatch(_OWN_RUNTIME, name)]:
        raise ValueError(f"{bad[0]!r} is not a runtime's name: 1 to 32 letters, digits, `.`, `_`, `-`")
    if SHELL in value and value[SHELL].adapter:
        raise ValueError("shell has no adapter: it runs the command its agent was registered with")
    return value


def _price_names(value: dict[str, "Price"]) -> dict[str, "Price"]:
    tiers = (name for name in value if name.strip().lower().startswith(TIER))
    for name in tiers:
        tier = name.removeprefix(TIER)
        if tier not in list(Tier):
            known = ", ".join(TIER + word for word in Tier)
            raise ValueError(f"{name!r} is not a tier; the tiers are {known}{did_you_mean(tier, Tier)}")
    return value


class Settings(Section):
    """The whole of `config.toml`."""

    orchestrate: Orchestrate = Orchestrate()
    runtimes: Annotated[dict[str, RuntimeSection], AfterValidator(_runtime_names)] = {}
    temporal: Temporal = Temporal()
    store: Store = Store()
    artifacts: ArtifactsSection = ArtifactsSection()
    worker: WorkerSection = WorkerSection()
    notify: NotifySection = NotifySection()
    bridge: BridgeSection = BridgeSection()
    github: Github = Github()
    git: Git = Git()
    fleet: Fleet = Fleet()
    prices: Annotated[dict[str, Price], AfterValidator(_price_names)] = {}

    @model_validator(mode="after")
    def _keeps_the_account_from_agents(self) -> Self:
        for name, runtime in self.runtimes.items():
            if handed := sorted({*runtime.env} & {*self.github.secrets}):
                raise ValueError(f"[runtimes.{name}].env hands {handed[0]} to agents: it is the secret of [github]")
        return self

    @model_validator(mode="after")
    def _has_schemas_only_where_a_program_takes_them(self) -> Self:
        for name, runtime in self.runtimes.items():
            program = program_of(name, runtime.adapter)
            if runtime.structured is True and not (program and program.takes_schema):
                raise ValueError(f"[runtimes.{name}].structured: only codex and claude take the schema of a result")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the environment variables that the settings name: their values are secret."""
        granted = [name for section in self.runtimes.values() for name in section.env]
        return tuple(name for name in (*granted, self.notify.webhook_secret_env, *self.github.secrets) if name)

    @property
    def host(self) -> str:
        """Return the host whose checkouts this process works on."""
        return self.worker.host or socket.gethostname()

    @property
    def is_fleet(self) -> bool:
        """True if several hosts may share the store: then a host is chosen for each attempt (ruling Q4)."""
        return bool(self.store.url)

    @property
    def every_runtime(self) -> tuple[str, ...]:
        """Return the runtimes that agents may be registered with: the known ones, and those set up here by ACP."""
        return tuple(dict.fromkeys((*RUNTIMES, *BY_ACP, *self.runtimes)))

    @property
    def acp_runtimes(self) -> tuple[str, ...]:
        """Return the runtimes by ACP: those set up here, and those whose own program is found."""
        here = {name for name, program in BY_ACP.items() if not program.command and programs.find(program)}
        return tuple(name for name in self.every_runtime if name not in RUNTIMES and name in {*self.runtimes, *here})

    @property
    def configured_runtimes(self) -> tuple[str, ...]:
        """Return the runtimes for ephemeral workers and recipes: those set up here, and those whose program is found.

        A section that names a runtime's program counts even if the program is missing: its jobs then report that.
        """
        set_up = {name for name, section in self.runtimes.items() if section.adapter or section.command}
        return tuple(name for name, program in DRIVEN.items() if name in set_up or programs.find(program))

    def runtime_by_name(self, name: str) -> str:
        """Return the runtime that a person named, by the runtime's name or by its program's name."""
        return runtime_of(name, {runtime: section.adapter for runtime, section in self.runtimes.items()}) or name

    def program_name(self, runtime: str) -> str:
        """Return the name by which people know a runtime: that of its program, if it has one."""
        adapter = self.runtime(runtime).adapter
        program = program_of(runtime, "" if adapter == SCRIPT else adapter)
        return program.name if program else runtime

    @property
    def reach_the_server(self) -> tuple[str, ...]:
        """Return the runtimes whose agents can reach Temporal, which doesn't check who connects (ruling N2)."""
        return tuple(
            name for name, section in self.runtimes.items() if section.network == "full" or section.box == "none"
        )

    @property
    def by_hand(self) -> bool:
        """Return whether people's messages are accepted from Temporal's own tools (ruling N1)."""
        named = self.temporal.by_hand
        return not self.reach_the_server if named == "auto" else named

    def snapshot(self) -> TreeSettings:
        """Return the settings that a tree keeps from its start on (ruling K4)."""
        o = self.orchestrate
        return TreeSettings(
            bounds=Bounds(
                max_delegation_depth=o.max_delegation_depth,
                max_delegation_total_jobs=o.max_delegation_total_jobs,
                max_delegation_wall_clock_seconds=o.max_delegation_wall_clock,
                max_delegation_token_budget=o.max_delegation_token_budget,
                max_delegation_cost_usd=o.max_delegation_cost_usd,
                max_delegation_width=o.max_delegation_width,
                max_delegation_non_progress_streak=o.max_delegation_non_progress_streak,
                max_verify_replan_attempts=o.max_verify_replan_attempts,
            ),
            timeouts=Timeouts(**{key: getattr(o, key) for key in Timeouts.model_fields}),
            runtimes={
                name: RuntimeDefaults(
                    default_model=self.runtime(name).default_model or None,
                    default_effort=self.runtime(name).default_effort or None,
                    tiers=self.tiers_of(name),
                )
                for name in dict.fromkeys((*self.runtimes, *DRIVEN))
            },
            configured_runtimes=self.configured_runtimes,
            escalation_ttl_seconds=o.escalation_ttl,
            escalation_handle=o.escalation_handle or None,
            inline_artifact_bodies=o.inline_artifact_bodies,
            merge=o.merge,
            by_hand=self.by_hand,
            prices={pattern: (price.input, price.output) for pattern, price in self.prices.items()},
        )

    def tiers_of(self, name: str) -> dict[str, str]:
        """Return the models that a runtime has for each tier, by its program and the settings."""
        section = self.runtime(name)
        program = program_of(name, section.adapter)
        known = tiers.MODELS.get(program.name, {}) if program else {}
        return dict(known) | {tier.value: model for tier, model in section.tiers.items()}

    def structured(self, name: str) -> bool:
        """Return whether a runtime's program holds its agent to the result's schema (ruling S6)."""
        program, chosen = program_of(name, self.runtime(name).adapter), self.runtime(name).structured
        return bool(program and (program.result_tool if chosen == "auto" else chosen))

    def result_tool(self, name: str) -> str:
        """Return the tool by which a runtime's agents give their result; empty: it is their last message."""
        program = program_of(name, self.runtime(name).adapter)
        return program.result_tool if program and self.structured(name) else ""

    def builds_with(self, name: str) -> AutonomyPolicy:
        """Return the strictest policy under which a runtime can run builds and tests; for a script, the one that lets
        it write.
        """
        program = program_of(name, self.runtime(name).adapter)
        return program.builds_with if program else AutonomyPolicy.WORKSPACE_WRITE

    def runtime(self, name: str) -> RuntimeSection:
        """Return the section of a runtime, or the defaults."""
        return self.runtimes.get(name, _PLAIN)
