#!/usr/bin/env bash
# Makes a virtual environment for jobs with an old TensorFlow: old-venv.sh VENV REQUIREMENTS PYTHON...
# The first PYTHON that is 3.9 to 3.11 is taken. Where none is found or the registry cannot be reached it says so
# and succeeds: tests on the old TensorFlow are then skipped with the reason.
set -u
venv=$1 requirements=$2
shift 2
right='import sys, venv; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 11))'
python=
for candidate in "$@"; do
  if "$candidate" -c "$right" 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "no Python 3.9 to 3.11 found: tests on TensorFlow 2.15 are skipped" >&2
  exit 0
fi
echo "making $venv (about a minute, once)"
rm -rf "$venv"
if "$python" -m venv "$venv" &&
  "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check -r "$requirements"; then
  touch "$venv/.stamp"
else
  rm -rf "$venv"
  echo "$venv could not be made: tests on TensorFlow 2.15 are skipped" >&2
fi
exit 0
