# What `agents` and `github-tools` share; they say which `programs` ("name version") there are, and what each `starts`.
# Everything is made in one cache, in a folder of its own for each name and version. Each program's packages are those of its lock file in
# dev-cluster/npm, with their digests; no install script runs. A new version, in the folder of its name there:
#
#   npm install --package-lock-only --omit-lockfile-registry-resolved --save-exact PACKAGE@VERSION

locks=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/npm" && pwd -P)
cache=${AGENTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/delegation-service/agents}

say() { printf '%s\n' "$*" >&2; }
command_of() { printf '%s/%s-%s/%s' "$cache" "$1" "$2" "$1"; }

# Two at once would download everything twice. The lock goes with this process, however it ends; half-made things too.
wait_for_turn() {
  [[ -z ${turn-} ]] || return 0
  turn=mine
  mkdir -p -- "$cache"
  exec 9>"$cache/lock"
  if ! python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null; then
    say "another set-up is at work in $cache; waiting for it"
    python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
  fi
  trap 'rm -rf -- "$cache"/new-*' EXIT
}

# Makes the command of a program, in the folder it is installed in. A script may have its own `finish` for what is no program.
finish_program() {
  printf '#!/bin/sh\nhere=$(dirname -- "$0")\nexec%s "$@"\n' "$(starts "$1")" >"$1"
  chmod +x -- "$1"
}
tried_program() { "$1" --version 2>&1 </dev/null | grep -F -- "$2" >/dev/null; }

finish() { finish_program "$1"; }
tried() { tried_program "$@"; }

# Made beside its place, tried, then moved there whole: a command that is there works.
install() {
  local name=$1 version=$2 new=$cache/new-$1
  say "installing $name $version into $cache"
  rm -rf -- "$new"
  mkdir -- "$new"
  cp -- "$locks/$name"/package{,-lock}.json "$new"
  (cd -- "$new" && npm ci --cache "$new/npm" --ignore-scripts --no-audit --no-fund --no-progress \
    --fetch-retries 1 --loglevel error) >"$new/log" 2>&1 || { tail -n 5 -- "$new/log"; return 1; }
  rm -rf -- "$new/npm"
  (cd -- "$new" && finish "$name")
  HOME=$new/home tried "$new/$name" "$version" || { printf '%s was installed and does not run here\n' "$name"; return 1; }
  rm -rf -- "$new/home" "$cache/$name-$version"
  mv -- "$new" "$cache/$name-$version"
}

attempt() {
  local why
  command -v npm >/dev/null || { printf 'npm is not on PATH\n'; return 1; }
  why=$(install "$@") && return
  printf 'npm could not install it: %s\n' "${why//$'\n'/ }"
  return 1
}

from_npm() {
  local option=${1-} missing name version command program
  missing=0
  for program in "${programs[@]}"; do
    read -r name version <<<"$program"
    command=$(command_of "$name" "$version")
    if [[ ! -x $command && $option != --check ]]; then
      wait_for_turn
      if [[ -x $command ]] || attempt "$name" "$version" >"$cache/$name.why"; then rm -f -- "$cache/$name.why"; fi
    fi
    if [[ -x $command ]]; then
      printf '%s\t%s\n' "$name" "$command"
    else
      missing=1
      say "$name $version: $(cat -- "$cache/$name.why" 2>/dev/null || echo "not installed: dev-cluster/${0##*/}")"
    fi
  done
  return "$missing"
}
