#!/usr/bin/env bash
# Writes requirements/constraints.txt: the newest versions that pyproject.toml allows, without hosts or hashes.
# lock.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --upgrade "pip>=25.1"
"$scratch/venv/bin/python" -m pip install --quiet . --group dev
{
  echo "# Made by \`make lock\`: what CI and \`make test\` install. The ranges that users get stand in pyproject.toml."
  "$scratch/venv/bin/python" -m pip freeze --exclude stepscope
} > "$scratch/constraints.txt"
mv "$scratch/constraints.txt" requirements/constraints.txt
