"""Hand whole files to the workers of pytest-xdist; each collects a file when its turn comes: `pytest -p tests.by_file`.

Without it every worker collects all tests before the first one runs. A file that a worker crashed in fails, and so does
the run when a file was finished by nobody.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

LINE = 72
"""Outcomes in a line."""


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker())
    elif config.getoption("dist") != "no" and not config.option.collectonly:
        config.pluginmanager.register(Run(config))


class WholeFile(pytest.Item):
    """A file of tests that waits for its turn."""

    def tests(self) -> list[pytest.Item]:
        """Collect the tests of this file that are selected."""
        assert self.parent is not None
        module = pytest.Module.from_parent(self.parent, path=self.path)
        tests = list(self.session.genitems(module))
        self.config.hook.pytest_collection_modifyitems(session=self.session, config=self.config, items=tests)
        return tests

    def runtest(self) -> None:
        raise NotImplementedError("its tests are run")


class Worker:
    """Collects files in place of tests, and runs a file's tests where pytest-xdist asks for one test."""

    @pytest.hookimpl
    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> WholeFile:
        name = module_path.relative_to(parent.config.rootpath).as_posix()
        return WholeFile.from_parent(parent, name=name, nodeid=name, path=module_path)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
        """Keep every file: `-k` and `-m` select among its tests."""
        selection = config.option.keyword, config.option.markexpr
        if any(isinstance(item, WholeFile) for item in items):
            config.option.keyword = config.option.markexpr = ""
        try:
            return (yield)
        finally:
            config.option.keyword, config.option.markexpr = selection

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, WholeFile):
            return None
        session = item.session
        files, place, tests = session.items, session.items.index(item), item.tests()
        session.items = [*files, *tests]
        end = nextitem and session  # the next file may have no test that is selected
        for test, following in zip(tests, [*tests, end][1:], strict=True):
            session.items[place] = test  # the one whose reports pytest-xdist expects
            item.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if session.shouldfail or session.shouldstop:
                break
        else:
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        session.items = files
        return True


class Run:
    """Shows how far the workers are, and sees to it that every file was finished."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.files: set[str] = set()
        self.finished: set[str] = set()
        self.outcomes = 0

    @pytest.hookimpl
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self.files.update(ids)

    @pytest.hookimpl
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if nodeid in self.files:
            self.finished.add(nodeid)
            return
        self.outcomes += 1
        if self.outcomes % LINE == 0:
            self.show(f" [{len(self.finished)} of {len(self.files)} files]\n")

    def show(self, text: str) -> None:
        if terminal := self.config.pluginmanager.get_plugin("terminalreporter"):
            terminal.write(text, flush=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and self.finished != self.files:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif session.exitstatus == pytest.ExitCode.OK and not self.outcomes:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if unfinished := sorted(self.files - self.finished):
            terminalreporter.write_line(f"not finished: {' '.join(unfinished)}")
