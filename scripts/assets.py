"""Builds the page (``frontend/``) into ``src/stepscope/assets/``; ``--check`` only says whether it is fresh.

Without Node nothing can be built, but what is there can be held against the hashes that the last build wrote down: of
all sources, and of every file that was made of them. With Node and ``frontend/node_modules`` the build is compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "frontend"
ASSETS = ROOT / "src" / "stepscope" / "assets"
RECORD = "build.json"
SOURCES = ("package.json", "package-lock.json", "tsconfig.json", "build.mjs")


def sources() -> str:
    """One hash of everything that the page is made of."""
    files = [FRONTEND / name for name in SOURCES] + sorted((FRONTEND / "src").rglob("*"))
    digest = hashlib.sha256()
    for file in filter(Path.is_file, files):
        digest.update(f"{file.relative_to(FRONTEND).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def made(folder: Path) -> dict[str, str]:
    """The hash of every built file by name."""
    files = sorted(file for file in folder.iterdir() if file.name != RECORD) if folder.is_dir() else []
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def build(folder: Path) -> None:
    """Check types and build into a folder.

    Raises:
        subprocess.CalledProcessError: it cannot be built; what Node says stands on the terminal.
    """
    subprocess.run(["npx", "--no-install", "tsc", "--noEmit"], cwd=FRONTEND, check=True)
    subprocess.run(["node", "build.mjs", str(folder)], cwd=FRONTEND, check=True)


def can_build() -> bool:
    """Whether Node and the packages are here."""
    return shutil.which("node") is not None and (FRONTEND / "node_modules").is_dir()


def problems() -> list[str]:
    """Reasons why the built page differs from the sources."""
    try:
        record = json.loads((ASSETS / RECORD).read_text())
    except (OSError, ValueError) as error:
        return [f"{RECORD} cannot be read: {error}"]
    found = []
    if record["sources"] != sources():
        found.append("frontend/ has changed since the page was built")
    if record["made"] != made(ASSETS):
        found.append("a file of src/stepscope/assets/ is not as it was built")
    if not found and can_build():
        with tempfile.TemporaryDirectory() as scratch:
            build(Path(scratch))
            if made(Path(scratch)) != record["made"]:
                found.append("the same sources build another page here: other versions of the packages?")
    return found


def main() -> int:
    """Build or compare; 1 when the page is not fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="build nothing; fail when the page is not fresh")
    if parser.parse_args().check:
        found = problems()
        if found:
            sys.stderr.write("; ".join(found) + ": make assets\n")
        return 1 if found else 0
    build(ASSETS)
    record = {"sources": sources(), "made": made(ASSETS)}
    (ASSETS / RECORD).write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
