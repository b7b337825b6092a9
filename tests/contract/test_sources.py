"""A cited work has one name and one title, and both stand in docs/sources.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKS = {
    short: title
    for short, title in re.findall(
        r"^\| ([^|]+?) \| ([^|]+?) \|", (ROOT / "docs" / "sources.md").read_text(), re.MULTILINE
    )
    if short not in ("cited as", "---")
}
"""Title of each work by the name that it is cited by."""
VENUES = {
    "OpML": "OpML'19",
    "Rand": "Rand 2020",
    "Gregg": "Gregg 2022",
    "FSE'22": "FSE'22 study",
    "linux-mm": "linux-mm 2025",
}
"""The word by which a citation is recognised, and what must stand there of the work's name."""


def _citations() -> list[tuple[str, str]]:
    """(file, reference): those under the detectors' and rules' "References", each on one line."""
    found = []
    for folder in ("detectors", "check/rules"):
        for path in sorted((ROOT / "src" / "stepscope" / folder).rglob("*.py")):
            _, _, text = path.read_text().partition("## References\n")
            body = " ".join(text.partition('"""')[0].split())
            found += [(path.name, part) for part in re.split(r";\s|(?<=[a-z)\d])\.\s", body) if part]
    return found


def test_every_work_of_the_table_is_known_by_its_venue() -> None:
    """Each row of the table is found by one word, and each word has its row."""
    assert sorted(next(word for word, name in VENUES.items() if name in short) for short in WORKS) == sorted(VENUES)
    assert len(set(WORKS.values())) == len(WORKS)


@pytest.mark.parametrize("word", VENUES)
def test_a_work_is_cited_by_its_name(word: str) -> None:
    """No reference gives a cited work another name or another title than the table."""
    title = next(title for short, title in WORKS.items() if VENUES[word] in short)
    mine = [(file, text) for file, text in _citations() if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)]
    assert [(file, text) for file, text in mine if VENUES[word] not in text] == []
    if word != "FSE'22":  # its codebook's words are quoted
        quoted = [(file, said) for file, text in mine for said in re.findall('"([^"]+)"', text)]
        assert [(file, said) for file, said in quoted if said != title] == []


def test_titles_stand_in_the_table_alone() -> None:
    """A title that is written down once cannot differ from itself."""
    pages = [*(ROOT / "src" / "stepscope").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    titles = [title for title in WORKS.values() if not title.startswith("a ")]
    elsewhere = [(p.name, t) for p in pages if p.name != "sources.md" for t in titles if t in p.read_text()]
    assert elsewhere == []
