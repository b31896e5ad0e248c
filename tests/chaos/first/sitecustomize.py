"""Sets the hook of stations in each Python process that a case starts; its folder is first on their PYTHONPATH."""

from tests.chaos import hook

hook.install()
