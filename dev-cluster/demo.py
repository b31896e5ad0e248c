"""The demo: a cluster of its own, a repository, agents without a model, and a tree of jobs, shown live to its end.

Every step is a command anybody could type. To tell more of the story, add a step to `STORY`.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from activities.boxes import machine
from activities.settings.model import Settings

REPO = "demo/hello"
SERVICE = Path(sys.executable).with_name("service")


class CommandFailed(Exception):  # noqa: N818
    """A command of the story did not do what it should."""


@dataclass(frozen=True)
class Stage:
    """Where the demo plays: its home, and the environment in which commands are typed."""

    home: Path

    @property
    def checkout(self) -> Path:
        """The repository the agent works on."""
        return self.home / "demo" / "hello"

    @property
    def environment(self) -> dict[str, str]:
        """Nobody's cluster but our own, whatever this machine is set up for."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("TEMPORAL_", "SERVICE_"))}
        return {**ours, "SERVICE_HOME": str(self.home), "TEMPORAL_CONFIG_FILE": os.devnull}

    def service(self, *words: str, quiet: bool = False) -> str:
        """Type a `service` command: show it, show what it printed, return that."""
        print(f"\n  $ service {shlex.join(words)}", flush=True)
        done = subprocess.run([SERVICE, *words], env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CommandFailed(f"{done.stdout}{done.stderr}".strip() or f"exit status {done.returncode}")
        if not quiet:
            show(done.stdout)
        return done.stdout

    def watch(self, *words: str) -> None:
        """Type a command whose output is shown as it comes."""
        print(f"\n  $ service {shlex.join(words)}", flush=True)
        if subprocess.run([SERVICE, *words], env=self.environment, check=False).returncode != 0:
            raise CommandFailed(f"service {shlex.join(words)} failed")

    def git(self, *words: str) -> None:
        """Git as nobody in particular, untouched by what is configured here."""
        who = ("-c", "user.name=Demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(self.checkout), *who, *words], check=True, capture_output=True)


def show(text: str) -> None:
    """Print set off from the story."""
    for line in text.rstrip().splitlines():
        print(f"    {line}", flush=True)


def the_cluster(stage: Stage) -> None:
    """A Temporal server, its web UI and a worker, in a home of their own."""
    there = machine.look(Settings().worker.agents_uid)
    if there.best is None:
        show(f"This machine has no box for agents, so the demo's own run in none. To have one: {machine.INSTALL}")
        (stage.home / "config.toml").write_text('[runtimes.shell]\nbox = "none"\n')
    stage.service("daemon", "start")


def a_repository(stage: Stage) -> None:
    """A small git repository, and the service told about it."""
    stage.checkout.mkdir(parents=True)
    stage.git("init", "--quiet", "--initial-branch", "main")
    (stage.checkout / "hello.py").write_text('print("hello")\n')
    (stage.checkout / "README.md").write_text("# Hello\n")
    stage.git("add", ".")
    stage.git("commit", "--quiet", "--message", "Say hello")
    stage.service("repo", "add", REPO, str(stage.checkout))


def a_team(stage: Stage) -> None:
    """Three registered agents. They are a program of a hundred lines, so no model and no key is needed."""
    command = shlex.join([sys.executable, str(Path(__file__).with_name("demo_agent.py"))])
    write = ("--capabilities", "implement", "--autonomy", "workspace-write")
    for name, able in (("lead", ()), ("builder", write), ("checker", ())):
        stage.service("agent", "add", name, "--runtime", "shell", "--command", command, "--repo", REPO, *able)


def a_tree(stage: Stage) -> None:
    """The lead delegates two parts and a check. The check fails, the lead plans again, and the second round passes."""
    words = ("ask", "lead", "Build a rate limiter, and have it verified.", "--repo", REPO, "--json")
    job = json.loads(stage.service("agent", *words, quiet=True))["job_id"]
    stage.watch("job", "tree", job, "--watch")
    shown = json.loads(stage.service("job", "tree", job, "--json", quiet=True))
    if shown["task"]["state"] != "done":
        raise CommandFailed(f"the task should be done; it is {shown['task']['state']}: {shown['task']['reason']}")
    last = shown["jobs"][-1]
    show(f"{last['decision']}: {last['summary']}")


STORY: tuple[Callable[[Stage], None], ...] = (the_cluster, a_repository, a_team, a_tree)


def play(stage: Stage) -> None:
    """Tell the story, a step at a time."""
    for step in STORY:
        print(f"\n{step.__name__.replace('_', ' ').capitalize()}. {step.__doc__}", flush=True)
        step(stage)
    status = json.loads(stage.service("daemon", "status", "--json", quiet=True))
    state = status["state"]
    print(f"\nLook at it in the web UI: {state['ui_url']}/namespaces/{state['namespace']}/workflows")


def keep(stage: Stage) -> None:
    """Say how to go on, and how to end it."""
    service = f"SERVICE_HOME={shlex.quote(str(stage.home))} {shlex.quote(str(SERVICE))}"
    print(f"\nIt goes on running. Look around:\n  {service} daemon status\n  {service} job list")
    print(f"Stop it and remove it:\n  {service} daemon stop && rm -rf {shlex.quote(str(stage.home))}")


def clear(stage: Stage) -> None:
    """Nothing running, nothing on disk."""
    ending = subprocess.run(
        [SERVICE, "daemon", "stop"], env=stage.environment, capture_output=True, text=True, check=False
    )
    if ending.returncode != 0:
        print(f"\nThe daemon could not be stopped, so {stage.home} stays:\n{ending.stderr}", file=sys.stderr)
        return
    shutil.rmtree(stage.home)
    print("\nStopped and removed. Keep it next time: dev-cluster/demo --keep")


def choose_home(wanted: Path | None) -> Path:
    """A new folder; never one with something in it, since it is removed at the end."""
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="service-demo-"))
    if wanted.exists() and any(wanted.iterdir()):
        sys.exit(f"error: {wanted} is not empty, and the demo would remove it\nName a folder that does not exist yet.")
    wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
    return wanted.absolute()


def failed(stage: Stage, error: CommandFailed) -> None:
    """What went wrong, and the end of the logs that may say why."""
    print(f"\nerror: {error}", file=sys.stderr)
    for log in sorted(stage.home.glob("logs/*.log")):
        lines = log.read_text(errors="replace").splitlines()[-5:]
        print(f"\nthe end of {log.name}:", *(f"  {line[:300]}" for line in lines), sep="\n", file=sys.stderr)


def interrupted(_number: int, _frame: object) -> NoReturn:
    """End as Ctrl-C does, by way of the clean-up."""
    raise KeyboardInterrupt


def main() -> int:
    """Play, then leave nothing behind unless asked to."""
    parser = argparse.ArgumentParser(
        prog="dev-cluster/demo", description="See the service work, without account, key or model."
    )
    parser.add_argument("--keep", action="store_true", help="leave it running, and say how to stop it")
    parser.add_argument("--home", type=Path, help="a folder to play in, which must not hold anything yet")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupted)
    stage = Stage(choose_home(wanted.home))
    kept = False
    try:
        play(stage)
        kept = wanted.keep
    except CommandFailed as error:
        failed(stage, error)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    finally:
        keep(stage) if kept else clear(stage)
    return 0


if __name__ == "__main__":
    sys.exit(main())
