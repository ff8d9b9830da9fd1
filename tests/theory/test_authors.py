"""Authors of the five papers are named as on their title pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Wang is left out: three authors of these papers and several others have that name.
INITIALS = {
    "Zhu": "Y.", "Bassily": "R.", "Mohri": "M.", "Suresh": "A. T.", "Lowy": "A.",
    "Razaviyayn": "M.", "Yang": "Z.", "Lei": "Y.", "Ying": "Y.", "Zhang": "H.",
    "Nguyen": "H. L.", "Ullman": "J.", "Zakynthinou": "L.",
}  # fmt: skip


def misnamed(text):
    """Names of the list with other initials, however the lines are broken."""
    flat = re.sub(r"\s+", " ", text)
    found = re.findall(rf"((?:\b[A-Z][a-z]?\.[ -])+)({'|'.join(INITIALS)})\b", flat)
    return [(own + name) for own, name in found if own.strip() != INITIALS[name]]


def test_authors_have_their_initials():
    files = [*(ROOT / "dp_halfspace").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    wrong = {str(path): found for path in files if (found := misnamed(path.read_text("utf-8")))}
    assert wrong == {}


def test_authors_find_their_papers():
    """From the first page, from the pages of the classes, and in the file for citations."""
    assert "[five papers](docs/papers.md)" in (ROOT / "README.md").read_text("utf-8")
    for page in (ROOT / "docs" / "estimators").glob("*.md"):
        assert "(../papers.md)" in page.read_text("utf-8")
    papers = (ROOT / "docs" / "papers.md").read_text("utf-8")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    titles = re.findall(r'^    title: "?(.*?)"?$', citation, re.MULTILINE)
    assert len(titles) == 5
    readme = (ROOT / "README.md").read_text("utf-8")
    for title in titles:
        assert title.partition(":")[0] in papers
        assert title in readme
    names = re.findall(r"family-names: ([\w-]+), given-names: ([^}]+)}", citation)
    assert len(names) == 16
    for family, given in names:
        initials = " ".join(f"{part[0]}." for part in re.split(r"[ ]", given))
        assert INITIALS.get(family, initials) == initials


def test_a_wrong_name_is_seen():
    assert misnamed("Y. Wang, Z. Zhu and A.\n    Suresh, J. Ullman") == ["Z. Zhu", "A. Suresh"]
