"""Looks for known defects in what stepscope is made of, and lists it: ``make audit``.

pip-audit asks for defects of the pinned Python packages, npm audit of the page's, bandit looks at our own source
(``tool.bandit`` in pyproject.toml says what it leaves out, and why), and cyclonedx-py writes the parts of an installed
stepscope to ``dist/stepscope.cdx.json``. One line for each. Exit code 1: something was found. What could not be asked
(no network, an index without that service) is said, and is no reason to fail.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv-audit" / "bin"
PINNED = ("requirements/constraints.txt", "requirements/mcp.txt")
PARTS = ROOT / "dist" / "stepscope.cdx.json"
SEVERE = ("high", "critical")
LIMIT_S = 300


class Said(NamedTuple):
    """What a tool has said: a line, and whether it found something that must be mended."""

    text: str
    bad: bool = False


def of_pip_audit(answer: str) -> Said:
    """From its JSON. A package that it could not look up has a reason and no defects, which is not the same as none."""
    try:
        packages = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Said("pip-audit: not asked: its service gave no answer")
    unasked = [one for one in packages if "skip_reason" in one]
    found = [f"{one['name']} {one['version']} ({v['id']})" for one in packages for v in one.get("vulns", ())]
    if len(unasked) == len(packages):
        return Said(f"pip-audit: not asked: none of {len(packages)} packages could be looked up")
    more = f", {len(unasked)} could not be looked up" if unasked else ""
    names = f": {', '.join(found)}" if found else ""
    return Said(f"pip-audit: {len(packages)} packages, {len(found)} known defects{more}{names}", bool(found))


def of_npm_audit(answer: str) -> Said:
    """From its JSON: defects by severity, or the registry's refusal."""
    try:
        counts = json.loads(answer)["metadata"]["vulnerabilities"]
    except (ValueError, KeyError, TypeError):
        return Said("npm audit: not asked: the registry gave no answer")
    named = ", ".join(f"{count} {name}" for name, count in counts.items() if count and name != "total")
    return Said(f"npm audit: {named or 'no known defects'}", any(counts.get(name) for name in SEVERE))


def of_bandit(answer: str) -> Said:
    """From its JSON: every finding counts, since those that are meant are left out by name."""
    read = json.loads(answer)
    lines = read["metrics"]["_totals"]["loc"]
    found = [f"{one['filename']}:{one['line_number']} {one['test_id']}" for one in read["results"]]
    names = f": {', '.join(found)}" if found else ""
    counts = Counter(one["issue_severity"].lower() for one in read["results"])
    said = ", ".join(f"{count} {name}" for name, count in counts.items()) or "no findings"
    return Said(f"bandit: {said} in {lines:,} lines{names}", bool(found))


def installed_with_it(report: str) -> str:
    """The packages that pip would install with stepscope, as pinned requirements, from its dry run's JSON."""
    packages = [one["metadata"] for one in json.loads(report)["install"]]
    return "".join(sorted(f"{one['name']}=={one['version']}\n" for one in packages if one["name"] != "stepscope"))


def output(*words: str, folder: Path = ROOT, given: str = "") -> str:
    """What a command prints; what it says besides is of no use here, nor is its exit code."""
    try:
        done = subprocess.run(
            words, cwd=folder, input=given, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def parts() -> Said:
    """Write the list of parts."""
    python = str(ROOT / ".venv" / "bin" / "python")
    words = ("install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", "-c", PINNED[0], ".")
    report = output(python, "-m", "pip", *words)
    if not report:
        return Said("cyclonedx-py: not written: pip could not say what it would install")
    needed = installed_with_it(report)
    PARTS.parent.mkdir(exist_ok=True)
    about = ("--pyproject", "pyproject.toml", "--output-reproducible", "--short-PURLs", "-o", str(PARTS), "-")
    output(str(BIN / "cyclonedx-py"), "requirements", *about, given=needed)
    written = json.loads(PARTS.read_text(encoding="utf-8"))["components"] if PARTS.is_file() else []
    where = PARTS.relative_to(ROOT)
    whole = len(written) == len(needed.splitlines()) > 0
    return Said(f"cyclonedx-py: {where}: {len(written)} parts of {len(needed.splitlines())}", not whole)


def npm() -> Said:
    """Ask npm, if it is here."""
    if shutil.which("npm") is None:
        return Said("npm audit: not asked: npm is not here")
    return of_npm_audit(output("npm", "audit", "--json", folder=ROOT / "frontend"))


def main() -> int:
    """Print a line for each tool; 1 if one of them found something."""
    pinned = [word for name in PINNED for word in ("-r", name)]
    asked = ("--no-deps", "--disable-pip", "--progress-spinner", "off", "-f", "json")
    source = ("-c", "pyproject.toml", "-r", "src", "scripts", "-f", "json", "-q")
    said = [
        of_pip_audit(output(str(BIN / "pip-audit"), *pinned, *asked)),
        npm(),
        of_bandit(output(str(BIN / "bandit"), *source)),
        parts(),
    ]
    print("\n".join(one.text for one in said))
    return int(any(one.bad for one in said))


if __name__ == "__main__":
    sys.exit(main())
