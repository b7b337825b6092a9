#!/usr/bin/env bash
# Debian packages that tests use: chromium (the page), iproute2 (loopback only).
# With --all also what later captures use. Installs only as root or with password-less sudo; else says what is
# missing. Always succeeds: a test that lacks its tool is skipped with the reason.
set -u
declare -A provides=([chromium]=chromium [iproute2]=ip)
if [ "${1:-}" = "--all" ]; then
  provides[linux-perf]=perf
  provides[libjemalloc2]=/usr/lib/*/libjemalloc.so.2
  provides[libgoogle-perftools4]=/usr/lib/*/libtcmalloc.so.4
fi

have() {
  case $1 in
    /*) compgen -G "$1" >/dev/null ;;
    *) PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null ;;
  esac
}

missing=()
for package in "${!provides[@]}"; do
  have "${provides[$package]}" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "not installed: ${missing[*]} (no apt-get here; tests that need them are skipped)" >&2
  exit 0
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then
    sudo=(sudo -n)
  else
    echo "not installed: ${missing[*]}; run: sudo apt-get install ${missing[*]}" >&2
    exit 0
  fi
fi
echo "installing ${missing[*]} (once)"
log=$(mktemp)
if ! { "${sudo[@]}" apt-get update -qq &&
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"; } \
  >"$log" 2>&1; then
  tail -n 3 "$log" >&2
  echo "not installed: ${missing[*]} (tests that need them are skipped)" >&2
fi
rm -f "$log"
exit 0
