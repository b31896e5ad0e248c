"""Cost of a fleet at rest: `python -m tests.benchmarks.bench_rest [CHECKOUT]`, with another checkout to compare with.

Two hosts' real workers share a Temporal server and a PostgreSQL, both of the benchmark's own. Measured are statements
and connections of the store while trees wait for people, the server's CPU for agents that are at work, and how soon an
agent hears of a kill from a server that sends no commands to workers.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parents[2]
HOSTS = ("a", "b")
PAUSED = (20, 200)
AGENTS = 24
STATEMENTS_SECONDS, CPU_SECONDS = 45.0, 40.0
"""The first is three rounds of the rarest look."""

STOPPED = 6
NAMESPACE = "service"
ASKS = """echo '{"service_result": {"decision": "approved", "summary": "asks", "human_questions":
 [{"id": "q", "prompt": "which?"}]}}'"""
FINE = """echo '{"service_result": {"decision": "approved", "summary": "fine"}}'"""
COUNT = """SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
 WHERE query !~* '^(BEGIN|COMMIT|ROLLBACK|SELECT \\$1$|SET |.*pg_stat_)'"""
"""Without what opens and ends transactions, and checks of connections."""


def main(other: str | None) -> None:
    sides = {"this": HERE} | ({"other": Path(other).resolve()} if other else {})
    seen = {name: measure(checkout) for name, checkout in sides.items()}
    for what, value in seen["this"].items():
        before = seen["other"][what] if other else 0.0
        ratio = f" / {before:8.2f} = {value / before:5.2f}" if before else ""
        print(f"{what:48} {value:8.2f}{ratio}")


def measure(checkout: Path) -> dict[str, float]:
    """Run the servers and the hosts of a checkout, and return its figures."""
    from bridge.daemon.server import server_command, server_environment
    from bridge.machine.ports import choose_port
    from tests import postgres
    from workflows.temporal import search

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        database = stack.enter_context(postgres.running(100, "-c shared_preload_libraries=pg_stat_statements"))
        port = choose_port(0, "Temporal").port
        command = server_command(
            None, port, None, namespace=NAMESPACE, search_attributes=tuple(search.NAMES.items()), log_level="error"
        )
        silent = [word.replace("true", "false") if "WorkerCommand" in word else word for word in command]
        server = stack.enter_context(running(silent, server_environment()))
        homes = [create_home(folder / name, name, port, database.url) for name in HOSTS]
        figures = dict[str, float]()
        time.sleep(3)
        call(checkout, homes[0], "prepare", str(folder))
        for home in homes[1:]:
            (home / "seal.key").write_bytes((homes[0] / "seal.key").read_bytes())
            (home / "seal.key").chmod(0o600)
            call(checkout, home, "prepare", str(folder))
        for home in homes:
            stack.enter_context(running((sys.executable, "-P", "-m", "activities"), environment(checkout, home)))
        time.sleep(12)
        figures["server CPU, ms a second, no agents"] = cpu_a_second(server)
        call(checkout, homes[0], "start", "sleeps", str(AGENTS))
        time.sleep(8)
        at_work = cpu_a_second(server)
        figures[f"server CPU, ms a second, {AGENTS} agents at work"] = at_work
        figures["server CPU, ms a second, for an agent"] = (
            at_work - figures["server CPU, ms a second, no agents"]
        ) / AGENTS
        (folder / "go").touch()
        figures["seconds until an agent hears of a kill, median"] = float(
            call(checkout, homes[0], "stop", str(folder), str(STOPPED))
        )
        there = 0
        for paused in PAUSED:
            for home in homes:
                call(checkout, home, "start", "asks", str((paused - there) // len(homes)))
            there = paused
            time.sleep(5)
            figures[f"statements a second, {paused} paused trees"] = statements_a_second(database.url)
        figures["connections of a host"] = connections(database.url) / len(homes)
    return figures


def create_home(home: Path, name: str, port: int, url: str) -> Path:
    """Create the home of a host."""
    home.mkdir(mode=0o700)
    temporal = f'[temporal]\naddress = "127.0.0.1:{port}"\nnamespace = "{NAMESPACE}"\n'
    store = f'[store]\nurl = "{url}?application_name={name}"\n'
    worker = f'[worker]\nhost = "{name}"\nmax_parallel_jobs = {AGENTS}\n'
    (home / "config.toml").write_text(f'[runtimes.shell]\nbox = "none"\n{temporal}{store}{worker}')
    return home


def environment(checkout: Path, home: Path) -> Mapping[str, str]:
    return os.environ | {"PYTHONPATH": str(checkout), "SERVICE_HOME": str(home)}


def call(checkout: Path, home: Path, *words: str) -> str:
    """Run a part of this file with the modules of a checkout, and return the last line that it prints."""
    command = [sys.executable, __file__, *words]
    done = subprocess.run(
        command, env=environment(checkout, home), check=True, cwd=checkout, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip().rpartition("\n")[2]


def prepare(folder: Path) -> None:
    """Register a repository and two agents of this host."""
    from activities.settings.home import Home
    from activities.settings.load import load
    from cli.main import main as typed

    home = Home.locate()
    name = load(home).settings.host
    repo = folder / f"repo-{name}"
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run([*git, "init", "-q", "-b", "main", str(repo)], check=True)
    subprocess.run([*git, "-C", str(repo), "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    commands = [["cluster", "init"], ["repo", "add", f"acme/{name}", str(repo)]]
    heard = f"{folder}/$SERVICE_JOB_ID"
    scripts = {
        "asks": ASKS,
        "sleeps": f"while [ ! -e {folder}/go ]; do sleep 1; done; {FINE}",
        "hears": f"trap 'date +%s.%N >{heard}.heard; exit' INT; touch {heard}.began; while :; do sleep 0.05; done",
    }
    for agent, script in scripts.items():
        program = folder / f"{agent}-{name}.sh"
        program.write_text(script)
        words = ["--runtime", "shell", "--command", f"sh {program}", "--repo", f"acme/{name}"]
        commands.append(["agent", "add", f"{agent}-{name}", *words, "--capabilities", "ask", "--autonomy", "read-only"])
    for command in commands:
        assert typed(command) == 0, command


def start(agent: str, count: int) -> None:
    """Start trees of this host, and wait until its agents are at work or wait for people."""
    import asyncio

    from activities.store import round_rows
    from bridge.operations.orders import new_jobs
    from bridge.operations.service import Service

    service = Service.locate()
    host = service.settings.host
    before = len(round_rows.open_rounds(service.store))

    async def all_of_them() -> None:
        for _ in range(count):
            await new_jobs.start(service, new_jobs.NewJob(f"{agent}-{host}", "ask", "which?", f"acme/{host}"))

    asyncio.run(all_of_them())
    while agent == "asks" and len(round_rows.open_rounds(service.store)) < before + count:
        time.sleep(0.5)


def stop(folder: Path, count: int) -> None:
    """Kill trees at once, one after another; print the median of the seconds until their agents hear of it."""
    import asyncio

    from bridge.operations.orders import new_jobs, trees
    from bridge.operations.service import Service

    service = Service.locate()
    host = service.settings.host

    async def one() -> float:
        job = await new_jobs.start(service, new_jobs.NewJob(f"hears-{host}", "ask", "wait", f"acme/{host}"))
        began, heard = folder / f"{job}.began", folder / f"{job}.heard"
        while not began.exists():
            await asyncio.sleep(0.05)
        await asyncio.sleep(3)
        at = time.time()
        await trees.kill(service, job, actor="bench", immediate=True)
        while not (heard.exists() and heard.read_text().strip()):
            await asyncio.sleep(0.05)
        return float(heard.read_text()) - at

    print(statistics.median(asyncio.run(one()) for _ in range(count)))


@contextmanager
def running(command: Sequence[str], env: Mapping[str, str]) -> Iterator[int]:
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def cpu_a_second(pid: int) -> float:
    """Return the milliseconds of CPU that a process takes in a second."""

    def seconds() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = seconds()
    time.sleep(CPU_SECONDS)
    return (seconds() - before) / CPU_SECONDS * 1000


def statements_a_second(url: str) -> float:
    query(url, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    before = query(url, COUNT)
    time.sleep(STATEMENTS_SECONDS)
    return (query(url, COUNT) - before) / STATEMENTS_SECONDS


def connections(url: str) -> float:
    names = ", ".join(f"'{name}'" for name in HOSTS)
    return query(url, f"SELECT count(*) FROM pg_stat_activity WHERE application_name IN ({names})")


def query(url: str, statement: str) -> float:
    """Return the first value of a statement's result, or 0."""
    import psycopg

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return float(row[0]) if row else 0.0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder]:
            prepare(Path(folder))
        case ["stop", folder, count]:
            stop(Path(folder), int(count))
        case ["start", agent, count]:
            start(agent, int(count))
        case [*checkout]:
            main(checkout[0] if checkout else None)
