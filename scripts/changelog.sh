#!/usr/bin/env bash
# Puts the files of changes/ into CHANGELOG.md below the heading of a version, and removes them. Usage: changelog.sh X.Y.Z
set -euo pipefail
version=${1:?usage: changelog.sh X.Y.Z}
cd "$(dirname "$0")/.."
mapfile -t files < <(git log --format= --name-only --diff-filter=A -- 'changes/*.md' | grep -v README.md | while read -r file; do
  [ -e "$file" ] && echo "$file"; done | awk '!seen[$0]++')
[ ${#files[@]} -gt 0 ] || { echo "changelog: changes/ has no change; write changes/NAME.md first" >&2; exit 1; }
{
  sed '/^## /,$d' CHANGELOG.md
  printf '## %s (%s)\n\n' "$version" "$(date +%F)"
  cat "${files[@]}"
  echo
  sed -n '/^## /,$p' CHANGELOG.md
} > CHANGELOG.new
mv CHANGELOG.new CHANGELOG.md
git rm -q "${files[@]}"
echo "CHANGELOG.md: ${#files[@]} changes under $version"
