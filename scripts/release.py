"""Makes the files of a release from a clean tree: changelog, version, a checked wheel and an sdist in ``dist/``.

It commits, tags and uploads nothing; its last lines say how. When a step fails, the tree is again as it was.

Usage: release.py X.Y.Z
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
CHANGELOG = ROOT / "CHANGELOG.md"
VERSION_FILE = ROOT / "src" / "stepscope" / "_version.py"
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
CHANGED = ("CHANGELOG.md", "changes", "src/stepscope/_version.py")
INDEX = "stepscope/assets/index.html"
NEEDED = ("stepscope/agent/bootstrap.py", "stepscope/wire/kinds.py", INDEX, "stepscope/py.typed")
BESIDES_SOURCE = {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
"""Files of an sdist outside of ``src/stepscope``: hatchling adds the last two."""


class ReleaseError(Exception):
    """Why there is no release, in one line."""


def git(*words: str) -> str:
    """What git prints.

    Raises:
        ReleaseError: it fails, as where there is no repository.
    """
    done = subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def parsed(version: str) -> tuple[int, ...]:
    """Numbers of a version, to be compared.

    Raises:
        ReleaseError: it is none of the form X.Y.Z.
    """
    found = VERSION.fullmatch(version)
    if found is None:
        raise ReleaseError(f"a version has the form X.Y.Z: make release VERSION=0.2.0 (got {version!r})")
    return tuple(map(int, found.groups()))


def current() -> str:
    """The version that the package says."""
    found = re.search(r'^__version__ = "([^"]+)"$', VERSION_FILE.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ReleaseError(f"{VERSION_FILE.name} has no line __version__")
    return found[1]


def unreleased(version: str) -> bool:
    """Whether the changelog describes a version that has not been released yet."""
    return f"\n## {version} (unreleased)\n" in CHANGELOG.read_text(encoding="utf-8")


def refuse(version: str) -> None:
    """Look at the tree before anything is changed.

    Raises:
        ReleaseError: nothing can be released from it under this version.
    """
    wanted = parsed(version)
    if dirty := git("status", "--porcelain").splitlines():
        more = f" and {len(dirty) - 1} more" if dirty[1:] else ""
        raise ReleaseError(f"the tree is not clean: commit or remove {dirty[0][3:]}{more} first")
    first = unreleased(version)
    said = current()
    if wanted < parsed(said) or (wanted == parsed(said) and not first):
        raise ReleaseError(f"{version} is not newer than {said}, the version of the tree")
    tags = [tag[1:] for tag in git("tag", "--list", "v*").split() if VERSION.fullmatch(tag[1:])]
    if tags and wanted <= parsed(newest := max(tags, key=parsed)):
        raise ReleaseError(f"{version} is not newer than the tag v{newest}")
    if not first and not [path for path in (ROOT / "changes").glob("*.md") if path.name != "README.md"]:
        raise ReleaseError("the changelog would have no entry: write changes/NAME.md first")


def step(*words: str) -> None:
    """Run one step; what it says stands on the terminal.

    Raises:
        ReleaseError: it failed.
    """
    if code := subprocess.run(words, cwd=ROOT, check=False).returncode:
        raise ReleaseError(f"{' '.join(words)} ended with code {code}")


def wrong_in_wheel(wheel: Path, tracked: set[str]) -> list[str]:
    """What is wrong with the files of a wheel: it holds the tracked files of the package, all of them and no other."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        made = json.loads(archive.read("stepscope/assets/build.json"))["made"] if INDEX in names else {}
    needed = {*NEEDED, *(f"stepscope/assets/{name}" for name in made)}
    return [
        *(f"{wheel.name} lacks {name}" for name in sorted((tracked | needed) - names)),
        *(f"{wheel.name} holds {name}, which is no tracked file of the package" for name in sorted(names - tracked)),
        *(f"{wheel.name} holds the test {name}" for name in sorted(filter(_is_test, names))),
    ]


def wrong_in_sdist(sdist: Path, tracked: set[str]) -> list[str]:
    """What is wrong with the files of an sdist: the package, and what is needed to build and to read about it."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if not member.isdir()}
    expected = {f"src/{name}" for name in tracked} | BESIDES_SOURCE
    return [
        *(f"{sdist.name} lacks {name}" for name in sorted(expected - {".gitignore"} - names)),
        *(f"{sdist.name} holds {name}" for name in sorted(names - expected)),
    ]


def _is_test(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return "/tests/" in name or last == "conftest.py" or last.startswith("test_")


def built(version: str) -> list[Path]:
    """The checked wheel and sdist.

    Raises:
        ReleaseError: they cannot be built, the wheel does not run, or their files are not the right ones.
    """
    step("make", "wheel-check")
    step(sys.executable, "-m", "hatchling", "build", "--target", "sdist")
    wheel, sdist = DIST / f"stepscope-{version}-py3-none-any.whl", DIST / f"stepscope-{version}.tar.gz"
    if missing := [path.name for path in (wheel, sdist) if not path.exists()]:
        raise ReleaseError(f"the build made no {missing[0]}")
    tracked = {name.removeprefix("src/") for name in git("ls-files", "-z", "src/stepscope").split("\0") if name}
    wrong = wrong_in_wheel(wheel, tracked) + wrong_in_sdist(sdist, tracked)
    with tempfile.TemporaryDirectory() as again:
        pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check")
        step(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", again, str(sdist))
        wrong += [f"from the sdist: {line}" for line in wrong_in_wheel(Path(again) / wheel.name, tracked)]
    if wrong:
        raise ReleaseError("; ".join(wrong[:3]) + (f"; and {len(wrong) - 3} more" if wrong[3:] else ""))
    return [wheel, sdist]


def release(version: str) -> list[Path]:
    """Change the tree and build; when that fails, the tree is again as it was.

    Raises:
        ReleaseError: there is no release.
    """
    refuse(version)
    done = False
    try:
        step("make", "changelog", f"VERSION={version}")
        text = VERSION_FILE.read_text(encoding="utf-8")
        VERSION_FILE.write_text(text.replace(f'"{current()}"', f'"{version}"'), encoding="utf-8")
        files = built(version)
        done = True
        return files
    finally:
        if not done:
            git("reset", "--quiet", "HEAD", "--", *CHANGED)
            git("checkout", "--quiet", "HEAD", "--", *CHANGED)


def main() -> int:
    """Release; 1 with one line when that is refused."""
    try:
        files = release(sys.argv[1] if len(sys.argv) > 1 else "")
    except ReleaseError as refusal:
        sys.stderr.write(f"release: {refusal}\n")
        return 1
    version = sys.argv[1]
    names = " ".join(path.relative_to(ROOT).as_posix() for path in files)
    print(f"{names}: checked. Nothing is committed, tagged or uploaded yet; next:")
    print(f"  git commit --all --message 'Release {version}' && git tag --annotate v{version} --message {version}")
    print(f"  git push origin HEAD v{version} && twine upload {names}")
    print(f"  python -m sigstore sign {names}    # signed, for who checks: docs/security.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
