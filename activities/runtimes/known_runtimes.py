"""The table of runtimes, with the program of each. All other code looks them up here.

A row is data; the code that starts a program and reads its output is its adapter in `agents`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from activities.runtimes.programs import RENEWAL_FILE, Program, Renewal, UsageScope
from workflows.contract.models import AutonomyPolicy, Runtime

SHELL = "shell"
SCRIPT = "script"
"""Value of the setting `adapter` for a runtime whose program is replaced by a command with the shell's protocol."""
ACP = "acp"
"""Value of the setting `adapter` for a command that speaks the Agent Client Protocol (ruling S7)."""

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

_ANY_ACP = Program(
    name=ACP,
    minimum=(0, 0, 0),
    install="install it",
    login="log in with the program itself",
    home_variable="",
    home_folder="",
    credentials=(),
    keys=(),
    lost_session=re.compile("(?!)"),
    acp=(),
    model_option="",
    counts=UsageScope.ESTIMATED,
)
"""What holds for every program that speaks ACP. The operator's settings say all else."""
_ONLY_READS = (AutonomyPolicy.AUTO, AutonomyPolicy.READ_ONLY)
_ASKS = {"edit": "ask", "bash": "ask"}
OPENCODE = replace(
    _ANY_ACP,
    name="opencode",
    minimum=(1, 18, 33),
    install="npm install -g opencode-ai",
    login="opencode auth login",
    home_variable="XDG_DATA_HOME",
    home_folder=".local/share",
    credentials=("opencode/auth.json",),
    keys=("OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
    settings=("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENCODE_DISABLE_MODELS_FETCH"),
    renews=(("refresh", ""),),
    writes=("opencode",),
    acp=("acp",),
    sets={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_PERMISSION": json.dumps(_ASKS)},
    held_with={
        **{policy: {"OPENCODE_PERMISSION": json.dumps(dict.fromkeys(_ASKS, "deny"))} for policy in _ONLY_READS},
        AutonomyPolicy.WORKSPACE_WRITE: {"OPENCODE_PERMISSION": json.dumps({**_ASKS, "bash": "deny"})},
    },
)
COPILOT = replace(
    _ANY_ACP,
    name="copilot",
    minimum=(1, 0, 102),
    install="npm install -g @github/copilot",
    login="copilot login",
    home_variable="COPILOT_HOME",
    home_folder=".copilot",
    credentials=("config.json",),
    keys=("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"),
    settings=(
        *("COPILOT_OFFLINE", "COPILOT_MODEL", "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE"),
        *("COPILOT_PROVIDER_MODEL_ID", "COPILOT_PROVIDER_WIRE_API", "COPILOT_PROVIDER_WIRE_MODEL"),
    ),
    hosts=("api.github.com", "github.com", "*.githubcopilot.com"),
    instructions=("copilot-instructions.md", "agents", "skills"),
    writes=("session-state",),
    acp=("--acp",),
    model_option="--model",
    sets={"COPILOT_AUTO_UPDATE": "false"},
    held_by={
        **dict.fromkeys(_ONLY_READS, ("--deny-tool=shell", "--deny-tool=write")),
        AutonomyPolicy.WORKSPACE_WRITE: ("--deny-tool=shell",),
    },
    own_errors=re.compile(r"(?s)\bError: (.+)\Z"),
    counts=UsageScope.RUN,
)
QWEN = replace(
    _ANY_ACP,
    name="qwen",
    minimum=(0, 15, 10),
    install="npm install -g @qwen-code/qwen-code",
    login="qwen, and in it /auth",
    home_variable="QWEN_HOME",
    home_folder=".qwen",
    credentials=("oauth_creds.json",),
    keys=("OPENAI_API_KEY", "DASHSCOPE_API_KEY"),
    settings=("OPENAI_BASE_URL", "OPENAI_MODEL"),
    renews=(("refresh_token", ""),),
    instructions=("QWEN.md", "agents", "skills"),
    writes=("projects", "tmp"),
    acp=("--acp",),
)
KIMI_ACP = replace(
    KIMI,
    name="kimi-acp",
    command="kimi",
    acp=("acp",),
    model_option="",
    counts=UsageScope.ESTIMATED,
    credentials=(),
    renewal=None,
    sets={"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CODE_NO_AUTO_UPDATE": "1"},
)
"""Kimi by ACP, with a key: jobs by ACP have no copy of its settings, which name the provider of a login."""


@dataclass(frozen=True)
class RuntimeRow:
    """A runtime that an agent may be registered with."""

    name: str
    program: Program | None
    """The runtime's program unless the settings name another. None: each agent has its own registered command."""


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
"""Programs with an adapter of their own, by name."""
BY_ACP: Mapping[str, Program] = {program.name: program for program in (OPENCODE, COPILOT, QWEN, KIMI_ACP)}
"""Known programs that speak ACP, by name: runtimes for registered agents, which need no settings."""
ADAPTERS = (*PROGRAMS, *BY_ACP, ACP, SCRIPT)
"""The values of the setting `adapter`."""
KNOWN = f"the runtimes are {', '.join([*PROGRAMS, SHELL, *BY_ACP])}, and what `[runtimes.NAME]` sets up"
"""The end of a sentence about an unknown runtime."""


def program_of(runtime: str, adapter: str = "") -> Program | None:
    """Return the program of a runtime; None for a script and for the shell."""
    if adapter == ACP:
        return replace(_ANY_ACP, name=runtime)
    return {**PROGRAMS, **BY_ACP}.get(adapter) if adapter else {**DRIVEN, **BY_ACP}.get(runtime)


def runtime_of(program: str, adapters: Mapping[str, str] = MappingProxyType({})) -> str | None:
    """Return the runtime whose program has this name, given the adapters in the settings.

    A script that replaces a runtime's program goes by that program's name.
    """
    driving = {name: adapters.get(name, "") for name in DRIVEN}
    names = {name: DRIVEN[name].name if adapter in ("", SCRIPT) else adapter for name, adapter in driving.items()}
    return next((name for name, driver in names.items() if driver == program), None)
