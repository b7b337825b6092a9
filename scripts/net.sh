#!/usr/bin/env bash
# Does a change of structure leave every answer as it was? Records eleven sessions of different kinds once, asks the code
# of BASE and that of this tree for reports, the REST answers and the checker's, and compares them byte by byte.
#
# Usage: scripts/net.sh BASE       a commit; BASE against itself must be equal first: net.sh HEAD on a clean tree
#        NET=folder                keeps sessions and answers there (default .net); delete it to record again
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:?which commit is compared with}
net=$(realpath -m "${NET:-.net}")
python=$PWD/.venv/bin/python
old=$PWD/.venv-tf215/bin/python
sessions=$net/sessions
mkdir -p "$sessions"
export TF_CPP_MIN_LOG_LEVEL=2 STEPSCOPE_TOKEN=only-for-the-net-of-answers

record() { # NAME COMMAND...: one session, by this tree's code
  local name=$1
  shift
  [ -e "$sessions/$name.stepscope" ] && return
  echo "record $name" >&2
  (cd "$net" && "$python" -m stepscope run -q --session "$sessions/$name.stepscope" "$@" >"$net/$name.log" 2>&1) && return
  rm -rf "$sessions/$name.stepscope"
  echo "the program of session $name failed: see $net/$name.log" >&2
  exit 1
}

cases=$PWD/bench/cases
record keras "$cases/08-fit-slow-map/slow.py"
record loop "$cases/06-retrace-by-shape/slow.py"
record session "$cases/18-session-feed-loop/slow.py"
record eager "$cases/20-run-eagerly-left-on/slow.py"
record predictions "$cases/15-predict-per-row/slow.py"
record inference "$PWD/tests/probes/programs/inference.py" "$net"
record ops --budget 20% "$cases/50-adam-on-large-table/slow.py"
record stacks "$cases/66-clean-augmentation-in-map/clean.py"
[ -x "$old" ] && record keras2 -- "$old" "$cases/16-checkpoint-every-few-batches/slow.py"
record cluster -- "$python" "$PWD/tests/run/programs/cluster.py"
[ -e "$sessions/import.stepscope" ] ||
  "$python" -m stepscope import -o "$sessions/import.stepscope" tests/data/run-metadata-2.21/ps-worker.pb >"$net/import.log" 2>&1

answers() { # NAME SOURCES: everything that the code below SOURCES says
  rm -rf "${net:?}/$1" "$sessions"/*/derived
  PYTHONPATH=$2 "$python" scripts/net_answers.py "$sessions" "$net/$1"
}

tree=$net/base
git worktree remove --force "$tree" 2>/dev/null || true
git worktree add --quiet --detach "$tree" "$base"
trap 'git worktree remove --force "$tree"' EXIT
rm -rf "${net:?}/tree"
cp -r src "$net/tree" # so that work may go on meanwhile
answers before "$tree/src"
answers after "$net/tree"
if diff -r "$net/before" "$net/after" >"$net/difference"; then
  echo "equal: $(find "$net/after" -type f | wc -l) answers about $(ls -d "$sessions"/*.stepscope | wc -l) sessions"
else
  diff -rq "$net/before" "$net/after" || true
  echo "different: see $net/difference" >&2
  exit 1
fi
