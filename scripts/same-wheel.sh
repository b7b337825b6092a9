#!/usr/bin/env bash
# Builds wheel and sdist twice, as two people would: other folder, time of files, zone, umask, order of hashes. Same bytes?
# Usage: same-wheel.sh PYTHON
set -eu
python=$(realpath -s "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset SOURCE_DATE_EPOCH

build() { # NAME UMASK ZONE SEED YEAR
  local copy="$folder/$1/tree"
  umask "$2"
  mkdir -p "$copy"
  (cd "$root" && git ls-files -z -- src CHANGELOG.md LICENSE README.md pyproject.toml .gitignore) |
    (cd "$root" && xargs -0 cp --parents -t "$copy")
  find "$copy" -exec touch -d "$5-06-07 08:09:10" {} +
  (cd "$copy" && TZ=$3 PYTHONHASHSEED=$4 "$python" -m hatchling build -d "$folder/$1/dist" >"$folder/$1/said" 2>&1) || {
    cat "$folder/$1/said" >&2
    exit 1
  }
}
(build one 022 UTC 1 2020)
(build a-longer-name 077 Asia/Tokyo 2 2026)
for file in "$folder"/one/dist/*; do
  name=$(basename "$file")
  cmp "$file" "$folder/a-longer-name/dist/$name"
  echo "$name: the same twice, sha256 $(sha256sum <"$file" | cut -c1-64)"
done
