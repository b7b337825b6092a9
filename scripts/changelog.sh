#!/usr/bin/env bash
# Puts the files of changes/ into CHANGELOG.md below the heading of a version, and removes them. Usage: changelog.sh X.Y.Z
# Where the first heading is that version "(unreleased)", it gets the date, and the changes stand at the end of its section.
set -euo pipefail
version=${1:?usage: changelog.sh X.Y.Z}
cd "$(dirname "$0")/.."
mapfile -t files < <(git log --format= --name-only --diff-filter=A -- 'changes/*.md' | grep -v README.md | while read -r file; do
  [ -e "$file" ] && echo "$file"; done | awk '!seen[$0]++')
waits=$(grep -m1 '^## ' CHANGELOG.md || true)
first=0
[ "$waits" != "## $version (unreleased)" ] || first=1
[ ${#files[@]} -gt 0 ] || [ $first = 1 ] || { echo "changelog: changes/ has no change; write changes/NAME.md first" >&2; exit 1; }
{
  sed '/^## /,$d' CHANGELOG.md
  printf '## %s (%s)\n\n' "$version" "$(date +%F)"
  if [ $first = 1 ]; then
    awk '/^## /{section++; getline; next} section == 1' CHANGELOG.md
    [ ${#files[@]} -eq 0 ] || printf '\n**Last changes**\n\n'
  fi
  [ ${#files[@]} -eq 0 ] || cat "${files[@]}"
  [ $first = 1 ] || echo
  awk -v first=$first '/^## /{section++} section > first' CHANGELOG.md
} > CHANGELOG.new
mv CHANGELOG.new CHANGELOG.md
[ ${#files[@]} -eq 0 ] || git rm -q "${files[@]}"
echo "CHANGELOG.md: ${#files[@]} changes under $version"
