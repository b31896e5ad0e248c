"""The table of runtimes, with the program of each. All other code looks them up here.

A row is data; the code that starts a program and reads its output is its adapter in `agents`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from activities.runtimes.programs import RENEWAL_FILE, Program, Renewal, UsageScope
from workflows.contract.models import AutonomyPolicy, Runtime

SHELL = "shell"
SCRIPT = "script"
"""Value of the setting `adapter` for a runtime whose program is replaced by a command with the shell's protocol."""

CODEX = Program(
    name="codex",
    minimum=(0, 169, 0),
    install="npm install -g @openai/codex",
    login="codex login",
    home_variable="CODEX_HOME",
    home_folder=".codex",
    credentials=("auth.json",),
    keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    lost_session=re.compile("no rollout found for thread id|already has an active writer"),
    hosts=("api.openai.com", "chatgpt.com", "*.chatgpt.com", "auth.openai.com"),
    instructions=("AGENTS.md", "AGENTS.override.md", "prompts", "skills", "rules"),
    writes=("sessions", "archived_sessions"),
    settings_used=(
        *("model", "model_*", "openai_base_url", "chatgpt_base_url", "oss_provider", "service_tier", "profile"),
        *("cli_auth_credentials_store", "forced_*", "preferred_auth_method", "features", "tools", "web_search"),
        *("instructions", "developer_instructions", "personality", "project_doc_*", "project_root_markers"),
        *("shell_environment_policy", "sandbox_workspace_write", "tool_output_token_limit", "*_agent_reasoning"),
    ),
    renews=(("refresh_token", ""),),
    renewal=Renewal(
        expires=("tokens", "access_token"),
        arguments=("app-server",),
        text="""{"id":1,"method":"initialize","params":{"clientInfo":{"name":"service","version":"1"}}}
{"method":"initialized"}
{"id":2,"method":"account/read","params":{"refreshToken":true}}
""",
    ),
    counts=UsageScope.SESSION,
    takes_schema=True,
    builds_with=AutonomyPolicy.WORKSPACE_WRITE,  # its sandbox then allows writing in the worktree, but not in `.git`
)
CLAUDE = Program(
    name="claude",
    minimum=(2, 1, 329),
    install="npm install -g @anthropic-ai/claude-code",
    login="claude /login",
    home_variable="CLAUDE_CONFIG_DIR",
    home_folder=".claude",
    credentials=(".credentials.json",),
    keys=(
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
    ),
    hosts=("api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"),
    instructions=("CLAUDE.md", "rules", "agents", "commands", "skills", "output-styles"),
    writes=("projects", "todos", "file-history"),
    settings_used=(
        *("model", "*Model", "availableModels", "modelOverrides", "effortLevel", "alwaysThinkingEnabled", "env"),
        *("apiKeyHelper", "aws*", "gcpAuthRefresh", "forceLogin*", "permissions", "sandbox", "outputStyle"),
        *("language", "attribution", "includeCoAuthoredBy", "respectGitignore", "cleanupPeriodDays"),
    ),
    login_used=("claudeAiOauth",),
    renews=(("refreshToken", ""),),
    renewal=Renewal(expires=("claudeAiOauth", "expiresAt"), arguments=("auth", "status")),
    settings=("ANTHROPIC_BASE_URL", "API_TIMEOUT_MS", "CLAUDE_CODE_MAX_RETRIES"),
    lost_session=re.compile("No conversation found with session ID"),
    takes_schema=True,
    result_tool="StructuredOutput",
    # it retries for three minutes; two refusals may be a login that it is renewing
    in_vain=re.compile(r"""(?=.*"subtype":"api_retry")(?=.*"error_status":40[13]\b)(?=.*"attempt":(?:[3-9]|\d\d))"""),
)
KIMI = Program(
    name="kimi",
    minimum=(2, 1, 0),
    install="npm install -g @moonshot-ai/kimi-code (it needs node 22.19 or newer)",
    login="kimi, and in it /login",
    home_variable="KIMI_CODE_HOME",
    home_folder=".kimi-code",
    credentials=("credentials/*",),
    keys=("KIMI_MODEL_API_KEY",),
    hosts=("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com", "auth.kimi.com", "www.kimi.com"),
    instructions=("AGENTS.md", "agents", "skills", "device_id"),
    writes=("sessions", "session_index.jsonl"),
    settings_used=(
        *("default_model", "default_provider", "models", "providers", "thinking", "secondary_model", "services"),
        *("loop_control", "background", "subagent", "image", "model_catalog", "experimental", "permission", "mcp"),
        *("telemetry", "merge_all_available_skills"),
    ),
    renews=(("refresh_token", ""), ("expires_at", 0)),  # 0: it uses the token without a look at its age
    renewal=Renewal(
        expires=("expires_at",),
        arguments=("--agent-file", RENEWAL_FILE, "-p", "yes"),
        text="---\nname: renewal\ndescription: Says one word.\ntools: []\n---\nAnswer with the one word yes.\n",
        asks=True,
    ),
    settings=(
        *("KIMI_MODEL_NAME", "KIMI_MODEL_BASE_URL", "KIMI_MODEL_PROVIDER_TYPE"),
        *("KIMI_LOOP_MAX_ATTEMPTS_PER_STEP", "KIMI_MODEL_THINKING_EFFORT"),
    ),
    lost_session=re.compile('Session "[^"]*" (?:not found|was created under a different directory)'),
    model_option="-m",
)


@dataclass(frozen=True)
class RuntimeRow:
    """A runtime that an agent may be registered with."""

    name: str
    program: Program | None
    """The runtime's program unless the settings name another. None: each agent has its own registered command."""

    @property
    def sessions(self) -> bool:
        """Return whether a later run can continue the session of an earlier one."""
        return self.program is not None


_ROWS = (
    RuntimeRow(Runtime.RUNTIME_A.value, CODEX),
    RuntimeRow(Runtime.RUNTIME_B.value, CLAUDE),
    RuntimeRow(Runtime.RUNTIME_C.value, KIMI),
    RuntimeRow(SHELL, None),
)
RUNTIMES: Mapping[str, RuntimeRow] = {row.name: row for row in _ROWS}
DRIVEN: Mapping[str, Program] = {row.name: row.program for row in _ROWS if row.program}
"""The runtimes that have a known program, in the order in which recipes use them."""

PROGRAMS: Mapping[str, Program] = {program.name: program for program in DRIVEN.values()}
"""Programs by name: with `script`, the values of the setting `adapter`."""
KNOWN = f"the runtimes are {', '.join([*PROGRAMS, SHELL])}"
"""The end of a sentence about an unknown runtime."""


def program_of(runtime: str, adapter: str = "") -> Program | None:
    """Return the program of a runtime; None for a script and for the shell."""
    return PROGRAMS.get(adapter) if adapter else DRIVEN.get(runtime)


def runtime_of(program: str, adapters: Mapping[str, str] = MappingProxyType({})) -> str | None:
    """Return the runtime whose program has this name, given the adapters in the settings.

    A script that replaces a runtime's program goes by that program's name.
    """
    driving = {name: adapters.get(name, "") for name in DRIVEN}
    names = {name: DRIVEN[name].name if adapter in ("", SCRIPT) else adapter for name, adapter in driving.items()}
    return next((name for name, driver in names.items() if driver == program), None)
