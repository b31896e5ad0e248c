"""GitHub's own command line, pointed at a GitHub of the tests.

`gh` speaks plain HTTP to one host only, `github.localhost`; the server of the tests plays the proxy on the way there.
"""

import os
import subprocess
from pathlib import Path

from tests.github.front import Front
from tests.github.tools import need_gh


def gh(github: Front, token: str, home: Path, *words: str) -> str:
    """Run a command and return its output: `gh(hub, hub.tokens["ann"], tmp_path, "api", "--paginate",
    "repos/acme/tool/pulls")`.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GH_HOST": "github.localhost",
        "GH_TOKEN": token,
        "GH_ENTERPRISE_TOKEN": token,
        "HTTP_PROXY": github.address,
        "GH_PROMPT_DISABLED": "1",
        "NO_COLOR": "1",
    }
    command = [need_gh(), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
