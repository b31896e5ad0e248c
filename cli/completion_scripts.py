"""The shells' completion scripts, which all call `service completion candidates`, and their usual places."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from workflows.model.errors import ServiceError

_BASH = """\
_service_completion() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%% *}")
  done < <(PROGRAM completion candidates -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -o nosort -F _service_completion service 2>/dev/null ||
  complete -o default -F _service_completion service
"""
_ZSH = """\
#compdef service
_service() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("${${line//:/\\\\:}/ /:}")
  done < <(PROGRAM completion candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then _describe -V 'service' found; else _files; fi
}
if [[ $funcstack[1] == _service ]]; then _service "$@"; else compdef _service service; fi
"""
_FISH = """\
# fish knows another program of this name, whose words are loaded and forgotten
complete -C 'service ' >/dev/null 2>&1
complete -c service -e
function __service_candidates
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    test (count $begun) -eq 0; and set begun ''
    set -l found (PROGRAM completion candidates -- $words[2..-1] $begun 2>/dev/null)
    if test (count $found) -gt 0
        string replace ' ' \\t -- $found
    else
        __fish_complete_path $begun
    end
end
complete -c service -f -k -a '(__service_candidates)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def script(shell: str) -> str:
    """Return the shell's script. It calls this installation, even if another `service` comes first on PATH."""
    return _SCRIPTS[shell].replace("PROGRAM", shlex.quote(_program()))


def install(shell: str) -> tuple[Path, list[str]]:
    """Write the script to its usual place, and return the path and the lines a start-up file needs, if any."""
    path, lines = _place(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(shell))
    except OSError as error:
        hint = f"service completion {shell} > /some/file"
        raise ServiceError(f"{path} cannot be written: {error.strerror}", hint) from None
    return path, lines


def _place(shell: str) -> tuple[Path, list[str]]:
    home = Path.home()
    if shell == "fish":
        return _folder("XDG_CONFIG_HOME", home / ".config") / "fish" / "completions" / "service.fish", []
    if shell == "zsh":
        folder = Path(os.environ.get("ZDOTDIR") or home) / ".zfunc"
        return folder / "_service", [f"fpath=({shlex.quote(str(folder))} $fpath)", "autoload -Uz compinit && compinit"]
    path = _folder("XDG_DATA_HOME", home / ".local" / "share") / "bash-completion" / "completions" / "service"
    loads_by_itself = Path("/usr/share/bash-completion/bash_completion").exists()
    return path, [] if loads_by_itself else [f"source {shlex.quote(str(path))}"]


def _folder(variable: str, usual: Path) -> Path:
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else usual


def _program() -> str:
    """Return the absolute path of this program if it was started as `service`."""
    found = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name == "service" else None
    return str(Path(found).absolute()) if found else "service"
