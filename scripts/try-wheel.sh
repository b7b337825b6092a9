#!/usr/bin/env bash
# Installs a wheel in an empty environment and runs it there, in an empty folder, as a new user would.
# Usage: try-wheel.sh WHEEL PYTHON CONSTRAINTS
set -eu
wheel=$(realpath "$1") python=$2 constraints=$(realpath "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH VIRTUAL_ENV STEPSCOPE_SESSIONS
"$python" -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check -c "$constraints" "$wheel"
mkdir "$folder/work"
cd "$folder/work"
PATH="$folder/env/bin:$PATH"

fail() {
  echo "try-wheel: $1" >&2
  [ ! -e said ] || cat said >&2
  exit 1
}

cat >job.py <<'PROGRAM'
import stepscope

for number in range(200):
    stepscope.step()  # the 199 steps lie between
    sum(i * i for i in range(20_000))
PROGRAM
cat >slow.py <<'PROGRAM'
import tensorflow as tf

model = tf.keras.models.load_model("m.keras")
for row in range(100):
    model.predict(tf.ones((1, 4)))
PROGRAM

python -c "import os, stepscope; assert stepscope.__file__.startswith(os.environ['PATH'].split('/env/')[0])" || fail "another stepscope was imported"
stepscope --version >said || fail "--version"
stepscope rule INP002 >said || fail "rule"
stepscope run --session job.stepscope job.py 2>said || fail "run"
grep -q '199 steps' said || fail "run: no steps in the report"
[ "$(wc -l <said)" -le 12 ] || fail "run: more than twelve lines"
stepscope report job.stepscope --format json --brief >said || fail "report"
python -c "import json; assert json.load(open('said'))['step']['count'] == 199" || fail "report: no steps"
stepscope report job.stepscope -o page.html && grep -q '<!doctype html>' page.html || fail "report: no page"
code=0
stepscope check slow.py >said 2>&1 || code=$?
[ "$code" = 1 ] && grep -q 'slow.py:5.*KER001' said || fail "check: code $code"
code=0
stepscope run -q -- python -c 'raise SystemExit(3)' || code=$?
[ "$code" = 3 ] || fail "run: the job's exit code 3 became $code"
python - <<'PROGRAM' || fail "the page is not in the wheel"
from importlib.resources import files
assert (files("stepscope") / "assets" / "index.html").is_file()
PROGRAM
echo "$(basename "$wheel"): installed in an empty environment, and run there"
