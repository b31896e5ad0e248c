"""Strict settings: every fault is named, and each value's origin is known (ruling K4)."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from activities.settings import toml
from activities.settings.home import Home
from activities.settings.in_use import changes
from activities.settings.load import SettingsError, load, load_settings
from activities.settings.model import RuntimeSection, Section, Settings
from bridge.operations import settings
from bridge.operations.service import Service

pytestmark = pytest.mark.ruling("K4")


def written(home: Home, text: str) -> Home:
    home.config.write_text(text)
    return home


def test_a_runtimes_section_may_have_its_programs_name(home: Home) -> None:
    loaded = load(written(home, '[runtimes.claude]\nenv = ["OWN"]\n'), {})
    assert loaded.settings.runtime("runtime_b").env == ["OWN"]
    path = ("runtimes", "runtime_b", "env")
    assert loaded.reading.origin(path) == "config.toml"
    settings.put(Service(home), "runtimes.runtime_b", 'box = "none"')
    assert tomllib.loads(home.config.read_text()) == {"runtimes": {"claude": {"box": "none", "env": ["OWN"]}}}


@pytest.mark.ruling("spec:limits.defaults")
def test_no_file_means_the_defaults_of_the_spec(home: Home) -> None:
    bounds = load_settings(home, {}).snapshot().bounds
    assert (bounds.max_delegation_depth, bounds.max_delegation_total_jobs, bounds.max_delegation_width) == (8, 64, 16)
    assert (bounds.max_delegation_wall_clock_seconds, bounds.max_delegation_token_budget) == (7200.0, 0)
    assert (bounds.max_delegation_cost_usd, bounds.max_delegation_non_progress_streak) == (0.0, 2)
    assert bounds.max_verify_replan_attempts == 2
    assert load_settings(home, {}).snapshot().escalation_ttl_seconds == 86_400.0
    assert not any(load_settings(home, {}).snapshot().timeouts.model_dump().values())


def test_the_file_is_read_and_empty_timeouts_are_not_set(home: Home) -> None:
    written(
        home,
        '[orchestrate]\nmax_delegation_wall_clock = "1h30m"\ndefault_plan_timeout = ""\n[runtimes.shell]\nenv = ["A"]',
    )
    settings = load_settings(home, {})
    assert settings.snapshot().bounds.max_delegation_wall_clock_seconds == 5400.0
    assert settings.snapshot().timeouts.default_plan_timeout is None
    assert settings.runtimes["shell"].env == ["A"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[orchestrate]\nmax_delegation_depht = 3",
            '[orchestrate].max_delegation_depht is not a setting; did you mean "max_delegation_depth"?',
        ),
        (
            "[worker]\nlabels = ['os:linux']",
            "[worker.labels].0 should be letters, digits, dots, dashes and underscores, not 'os:linux'",
        ),
        ("[orchestrat]\nx = 3", '[orchestrat] is not a setting; did you mean "orchestrate"?'),
        (
            "[runtimes.shell]\ncolour = 'x'",
            (
                "[runtimes.shell].colour is not a setting; known here: "
                "adapter, arguments, box, command, default_effort, default_model, env, hosts, max_parallel, "
                "mcp_servers, modes, network, network_backoff, network_retries, rate_limit_backoff, "
                "rate_limit_retries, rate_limit_wait, read, renew_login, structured, tiers, write"
            ),
        ),
        (
            "[runtimes.shell]\nbox = 'docker'",
            "[runtimes.shell].box should be 'auto', 'bwrap' or 'none', not 'docker'",
        ),
        (
            "[runtimes.shell]\nbox = 'landlock'",
            '[runtimes.shell].box: landlock is gone: write "auto" for bubblewrap\'s box, or "none" for no box',
        ),
        (
            "[runtimes.shell]\nread = ['tools']",
            "[runtimes.shell.read].0: 'tools' is not a path: write one that begins with / or ~/",
        ),
        (
            "[runtimes.shell]\nhosts = ['https://x/']",
            "[runtimes.shell.hosts].0: 'https://x/' is not a host: write name, name:port, *.name, * or 127.0.0.1:port",
        ),
        (
            "[runtimes.kimi]\nstructured = true",
            "[runtimes.runtime_c].structured: only codex and claude take the schema of a result",
        ),
        (
            "[runtimes.gemini]\nenv = []",
            (
                "[runtimes]: gemini is not a runtime; the runtimes are runtime_a, runtime_b, runtime_c, shell, "
                'opencode, copilot, qwen, kimi-acp, and with adapter = "acp" your own'
            ),
        ),
        (
            "[runtimes.gemini]\nadapter = 'acp'",
            "[runtimes].gemini: adapter acp needs a command",
        ),
        (
            "[runtimes.'my agent']\nadapter = 'acp'\ncommand = ['x']",
            "[runtimes]: 'my agent' is not a runtime's name: 1 to 32 letters, digits, `.`, `_`, `-`",
        ),
        (
            "[runtimes.codex]\nenv = []\n[runtimes.runtime_a]\nbox = 'none'",
            "[runtimes.codex] and [runtimes.runtime_a] are one section: leave one out",
        ),
        (
            "[orchestrate]\nmax_delegation_depth = 0",
            "[orchestrate].max_delegation_depth should be greater than or equal to 1, not 0",
        ),
        (
            "[orchestrate]\nmax_delegation_depth = '3'",
            "[orchestrate].max_delegation_depth should be a valid integer, not '3'",
        ),
        (
            "[artifacts]\nurl = 's3://team/agents'",
            (
                "[artifacts].url: object stores are gone, PostgreSQL has all artifacts: bring what is kept in "
                "s3://team/agents there (service help sizing says how), then leave this out"
            ),
        ),
        (
            "[worker]\nmetrics = '9464'",
            "[worker].metrics: '9464' is not an IP address and a port, such as 127.0.0.1:9464",
        ),
        (
            "[orchestrate]\nescalation_ttl = 24",
            '[orchestrate].escalation_ttl: a duration is text such as "90s", "30m" or "1h30m"',
        ),
    ],
)
def test_a_fault_is_one_sentence_that_names_the_key(home: Home, text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(written(home, text), {})
    assert caught.value.message == sentence
    assert caught.value.hint == f"edit {home.config}, then: service config check"


@pytest.mark.ruling("K5")
def test_a_tiers_price_is_a_setting_and_a_tier_nobody_knows_is_not(home: Home) -> None:
    text = '[prices."tier:deep"]\ninput = 1.0\noutput = 2.0\n[prices."gpt-*"]\ninput = 3.0\noutput = 4.0\n'
    prices = load_settings(written(home, text), {}).snapshot().prices
    assert prices == {"tier:deep": (1.0, 2.0), "gpt-*": (3.0, 4.0)}
    with pytest.raises(SettingsError) as caught:
        load_settings(written(home, text.replace("deep", "depe")), {})
    tiers = "tier:mechanical, tier:cheap, tier:standard, tier:deep"
    assert caught.value.message == f"[prices]: 'tier:depe' is not a tier; the tiers are {tiers}; did you mean \"deep\"?"


def _durations() -> list[tuple[str, str]]:
    """Return every key that takes a duration, with its section."""
    probe, durations = Settings(), []
    sections: dict[str, Section] = {name: getattr(probe, name) for name in ("orchestrate", "worker")}
    for name, section in {**sections, "runtimes.shell": RuntimeSection()}.items():
        for key in type(section).model_fields:
            try:
                type(section).model_validate({key: "90s"})
            except ValidationError:
                continue
            if getattr(type(section).model_validate({key: "90s"}), key) == 90.0:
                durations.append((name, key))
    return durations


@pytest.mark.ruling("spec:timeouts.precedence")
@pytest.mark.parametrize(("section", "key"), _durations())
@pytest.mark.parametrize("zero", ["0s", "0ms", "0m"])
def test_no_duration_is_zero(home: Home, section: str, key: str, zero: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(written(home, f'[{section}]\n{key} = "{zero}"'), {})
    sentence = f'[{section}].{key}: must be longer than zero, not "{zero}"'
    way_out = '; to set no limit, leave the key out or set it to ""' if key.startswith("default_") else ""
    assert caught.value.message == sentence + way_out


@pytest.mark.ruling("Q5")
def test_the_jobs_of_a_lost_host_move_after_ten_minutes_another_time_or_never(home: Home) -> None:
    assert load_settings(home, {}).fleet.move_after == 600.0
    assert load_settings(written(home, '[fleet]\nmove_after = "90s"'), {}).fleet.move_after == 90.0
    assert load_settings(written(home, '[fleet]\nmove_after = "0"'), {}).fleet.move_after == 0.0
    with pytest.raises(SettingsError, match='a duration is text such as "90s"'):
        load_settings(written(home, "[fleet]\nmove_after = 10"), {})
    with pytest.raises(SettingsError, match='must be "0", or 20s at least'):  # a host that works would be lost
        load_settings(written(home, '[fleet]\nmove_after = "19s"'), {})
    assert load_settings(written(home, '[fleet]\nmove_after = "20s"'), {}).fleet.move_after == 20.0


def test_every_duration_is_known_to_the_test_above() -> None:
    assert {
        "default_plan_timeout",
        "default_delegation_timeout",
        "escalation_ttl",
        "stop_grace",
        "network_backoff",
    } <= {key for _, key in _durations()}


def test_every_fault_is_told_at_once(home: Home) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(written(home, "[orchestrate]\na = 1\nmax_delegation_width = -1\n[nope]"), {})
    assert len(caught.value.message.splitlines()) == 3


def test_broken_toml_says_where(home: Home) -> None:
    with pytest.raises(SettingsError, match=r"not valid TOML.*line 2"):
        load_settings(written(home, "[orchestrate]\nx = = 1\n"), {})


@pytest.mark.ruling("spec:limits.overrides")
@pytest.mark.parametrize("name", ["SERVICE_MAX_DELEGATION_DEPTH", "SERVICE_MAX_DELEGATION_TOTAL_JOBS"])
@pytest.mark.parametrize("bad", ["0", "-1", "8.0", "", "many", "١٢"])
def test_a_bad_override_is_an_error_not_a_silent_default(home: Home, name: str, bad: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} must be a positive integer"):
        load_settings(home, {name: bad})


@pytest.mark.ruling("spec:limits.overrides")
def test_every_limit_that_may_be_overridden_reaches_the_tree(home: Home) -> None:
    written(
        home,
        "[orchestrate]\nmax_delegation_token_budget = 7\nmax_delegation_cost_usd = 1.5\n"
        "max_delegation_non_progress_streak = 3\nmax_verify_replan_attempts = 0\n"
        'max_delegation_wall_clock = "1m"\nmax_delegation_width = 2\nescalation_ttl = "1h"\n',
    )
    environment = {"SERVICE_MAX_DELEGATION_DEPTH": "4", "SERVICE_MAX_DELEGATION_TOTAL_JOBS": "5"}
    snapshot = load_settings(home, environment).snapshot()
    assert snapshot.bounds.model_dump() == {
        "max_delegation_depth": 4,
        "max_delegation_total_jobs": 5,
        "max_delegation_wall_clock_seconds": 60.0,
        "max_delegation_token_budget": 7,
        "max_delegation_cost_usd": 1.5,
        "max_delegation_width": 2,
        "max_delegation_non_progress_streak": 3,
        "max_verify_replan_attempts": 0,
    }
    assert snapshot.escalation_ttl_seconds == 3600.0


def test_a_value_of_the_environment_that_is_out_of_range_is_named_by_its_variable(home: Home) -> None:
    with pytest.raises(
        SettingsError, match=r"^SERVICE_BRIDGE_PORT should be less than or equal to 65535, not 65536"
    ) as e:
        load_settings(home, {"SERVICE_BRIDGE_PORT": "65536"})
    assert e.value.hint == "unset SERVICE_BRIDGE_PORT"
    home.config.write_text("[bridge]\nport = 65536\n")
    with pytest.raises(SettingsError, match=r"^\[bridge\].port should be"):
        load_settings(home, {"SERVICE_TEMPORAL_PORT": "7"})


def test_the_environment_wins_over_the_file_and_the_origin_says_so(home: Home) -> None:
    written(home, "[orchestrate]\nmax_delegation_depth = 3\nmax_delegation_width = 4")
    reading = load(home, {"SERVICE_MAX_DELEGATION_DEPTH": "5"}).reading
    values = {path[-1]: (value, reading.origin(path)) for path, value in reading.values.items()}
    assert values["max_delegation_depth"] == (5, "environment SERVICE_MAX_DELEGATION_DEPTH")
    assert values["max_delegation_width"] == (4, "config.toml")
    assert values["max_delegation_total_jobs"] == (64, "default")


ODD = """
[orchestrate]
escalation_ttl = "24h"
default_plan_timeout = "90s"
max_delegation_cost_usd = 1
inline_artifact_bodies = true

[runtimes.shell]
env = ["A", "B"]

[worker]
host = 'a "quoted" host'

[prices."gpt-5.1*"]
input = 1.5
output = 6
"""


def test_every_setting_is_written_as_the_file_takes_it_and_read_back_as_the_same(home: Home) -> None:
    first = load(written(home, ODD), {})
    shown = "\n".join(toml.lines({**first.reading.values, **first.reading.typed}, {}))
    for line in ('escalation_ttl = "24h"', 'default_plan_timeout = "90s"', "inline_artifact_bodies = true"):
        assert line in shown
    for line in ('keep_runs = "14d"', 'default_gate_timeout = ""', 'env = ["A", "B"]', '[prices."gpt-5.1*"]'):
        assert line in shown
    written(home, shown)
    assert load(home, {}).settings == first.settings


@given(text=st.text(), name=st.text())
def test_any_text_and_any_name_is_read_back_as_it_is(text: str, name: str) -> None:
    settings: dict[toml.Path, object] = {
        ("table", name, "one"): text,
        ("table", name, "two"): [text, text],
        ("table", name, "three"): -0.25,
    }
    read = tomllib.loads("\n".join(toml.lines(settings, {("table", name, "one"): "a note"})))
    assert read == {"table": {name: {"one": text, "two": [text, text], "three": -0.25}}}


def test_what_differs_from_what_a_process_has_read_is_named_and_a_duration_counts_by_its_length(home: Home) -> None:
    before = load(written(home, '[worker]\nstop_grace = "60s"\n[prices.a]\ninput = 1\noutput = 2\n'), {}).reading
    now = load(written(home, '[worker]\nstop_grace = "1m"\nmax_parallel_jobs = 2\n'), {}).reading
    assert [(each.key, each.here, each.there) for each in changes(now.in_use(), before.in_use())] == [
        ("worker.max_parallel_jobs", "2", "8"),
        ("prices.a.input", None, "1.0"),
        ("prices.a.output", None, "2.0"),
    ]
    assert not changes(now.in_use(["bridge"]), before.in_use(["bridge"]))
    assert before.file.digest != now.file.digest


APP = 'app_id = "1"\ninstallation_id = "2"\nprivate_key_file = "k.pem"\n'


@pytest.mark.ruling("L2")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f'[github]\ntoken_env = "T"\n{APP}', "set token_env or the three keys of a GitHub App, not both"),
        ('[github]\napp_id = "1"\n', "a GitHub App needs app_id, installation_id and private_key_file"),
        ('[github]\nprivate_key_file = "k"\n', "a GitHub App needs app_id, installation_id and private_key_file"),
        ('[github]\ntoken_env = "S"\nwebhook_secret_env = "S"\n', "are two secrets"),
        ('[github]\ntoken_env = "T"\n[runtimes.shell]\nenv = ["A", "T"]\n', "[runtimes.shell].env hands T to agents"),
        (
            '[github]\ntoken_env = "T"\nwebhook_secret_env = "S"\n[runtimes.shell]\nenv = ["S"]\n',
            "[runtimes.shell].env hands S to agents",
        ),
        ('[github]\ntoken_env = "ghp_a-token"\n', "token_env"),
        ('[github]\ntoken_env = "ghp_1234567890"\n', "[github].token_env: it is a token, not the name"),
        ('[github]\ncommands = ["merge"]\n', "commands"),
        ('[github]\npoll = "1s"\n', "poll"),
        ('[github]\napi_url = "https://me:secret@host/api"\n', "api_url"),
    ],
)
def test_an_account_that_cannot_be_meant_is_refused(home: Home, text: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(written(home, text), {})
    assert says in str(refused.value)
    assert "1234567890" not in str(refused.value)


@pytest.mark.ruling("L2", "L8")
@pytest.mark.parametrize(
    ("text", "configured"), [("", False), ("check = true\n", False), ('token_env = "T"\n', True), (APP, True)]
)
def test_an_account_is_set_up_by_a_token_or_an_app(home: Home, text: str, configured: bool) -> None:
    assert load_settings(written(home, f"[github]\n{text}"), {}).github.is_configured is configured


@pytest.mark.ruling("L8")
def test_the_manual_tells_every_setting_of_github_and_its_default() -> None:
    text = (Path(__file__).parents[3] / "cli/topics/github.md").read_text()
    table = text.partition("| `[github]` |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?`) \|(.*?)\|", table, re.MULTILINE)
    documented = {name: default.strip('`" ') for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    defaults = toml.flatten(Settings().model_dump(mode="json"))
    assert documented == {
        path[-1]: toml.value(given).strip('"') for path, given in defaults.items() if path[0] == "github"
    }


def test_the_manual_names_every_setting() -> None:
    pages = (Path(__file__).parents[3] / "cli/topics").glob("*.md")
    named = {key for page in pages for key in re.findall(r"(\w+)(?=`| = )", page.read_text())}
    keys = {path[-1] for path in toml.flatten(Settings().model_dump(mode="json"))}
    assert (keys | RuntimeSection.model_fields.keys()) - named == set()


@pytest.mark.ruling("N1")
@pytest.mark.parametrize(
    ("lines", "taken"),
    [
        ("", True),
        ('[runtimes.shell]\nnetwork = "model"\n', True),
        ('[runtimes.shell]\nnetwork = "full"\n', False),
        ('[runtimes.runtime_a]\nbox = "none"\n', False),
        ('[runtimes.shell]\nnetwork = "full"\n[temporal]\nby_hand = true\n', True),
        ('[runtimes.shell]\nnetwork = "full"\n[temporal]\nby_hand = "auto"\n', False),
        ("[temporal]\nby_hand = false\n", False),
    ],
)
def test_messages_by_hand_are_taken_unless_agents_reach_the_server_or_the_settings_name_it(
    home: Home, lines: str, taken: bool
) -> None:
    home.config.write_text(lines)
    assert load_settings(home, {}).snapshot().by_hand is taken


@pytest.mark.parametrize(
    ("section", "shown"),
    [("", "codex"), ('adapter = "claude"', "claude"), ('adapter = "script"\ncommand = ["x"]', "codex")],
)
def test_people_are_shown_the_program_that_drives_a_runtime(home: Home, section: str, shown: str) -> None:
    settings = load_settings(written(home, f"[runtimes.runtime_a]\n{section}\n"), {})
    assert (settings.program_name("runtime_a"), settings.program_name("shell")) == (shown, "shell")
