"""Every code block of the pages runs, every command exists, and constants are those of the code."""

from __future__ import annotations

import ast
import gc
import re
import runpy
import shlex
from importlib import import_module
from pathlib import Path

import pytest

import dp_halfspace
from benchmarks.default_path import TRUSTED, executed_files
from dp_halfspace import PrivacyLedger
from dp_halfspace._cli.arguments import parse_options
from dp_halfspace.privacy import PrivacyRecord
from tests.pages import FENCE, blocks, differences
from tests.support import imported_anew

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "generated", "gallery"} & set(page.parts)]
# Whatever is not of these kinds would escape the tests below.
KINDS = {"python", "text", "bash", "", "{toctree}", "{eval-rst}", "{include}"}


WITH_CODE = [page for page in PAGES if blocks(page.read_text(), "python")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run(page, tmp_path, monkeypatch):
    """Some pages by default, and all of them where `.ci/run` asks for the slow cases, too."""
    monkeypatch.chdir(tmp_path)
    assert differences(page.name, page.read_text()) == []


def test_fences_are_of_known_kinds():
    for page in PAGES:
        text = page.read_text()
        found = FENCE.findall(text)
        assert {kind for kind, _ in found} <= KINDS, page
        assert len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(found), page


def commands(text: str) -> list[str]:
    """Shell commands of a page: in fences, indented, or between backticks."""
    shell = "\n".join(code for _, code in blocks(text, "bash"))
    outside = FENCE.sub("", text)
    indented = "\n".join(re.findall(r"^    (\S.*)$", outside, re.MULTILINE))
    inline = "\n".join(re.findall(r"`([^`\n]+)`", outside))
    lines = "\n".join([shell, indented, inline]).split("\n")
    parts = [part.strip() for line in lines for part in line.split("#")[0].split("&&")]
    return [part for part in parts if part.startswith(tuple(CHECKS))]


def check_own_command(words: list[str]) -> None:
    parse_options(words[3:])


def check_install(words: list[str]) -> None:
    project = (ROOT / "pyproject.toml").read_text()
    for extras in re.findall(r"\[(.*?)\]", " ".join(words)):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def check_script(words: list[str]) -> None:
    source = (ROOT / words[1]).read_text() + (ROOT / "benchmarks" / "cells.py").read_text()
    for word in words[2:]:
        assert not word.startswith("-") or f'"{word}"' in source, word


def check_pytest(words: list[str]) -> None:
    assert words[1:] in ([], ["-n", "auto"], ["-m", "slow"], ["-m", "core"], ["--fresh"])


def check_in_ci(words: list[str]) -> None:
    assert " ".join(words) in (ROOT / ".ci" / "run").read_text()


def check_documentation(words: list[str]) -> None:
    assert words[0] == "sphinx-build"
    options = " ".join(words[1:])
    assert f"sphinx-build -q {options}" in (ROOT / ".ci" / "run").read_text()


CHECKS = {
    "python -m dp_halfspace": check_own_command,
    "python benchmarks/": check_script,
    "pip install": check_install,
    "pytest": check_pytest,
    "ruff ": check_in_ci,
    "sphinx-build": check_documentation,
}


def check_command(command: str) -> None:
    check = next(check for start, check in CHECKS.items() if command.startswith(start))
    check(shlex.split(command))


def test_commands_exist():
    for page in [*PAGES, ROOT / "benchmarks" / "README.md"]:
        for command in commands(page.read_text()):
            check_command(command)


def test_commands_are_found():
    found = commands((ROOT / "README.md").read_text())
    assert {"pip install .", "python -m dp_halfspace", "pytest -n auto"} <= set(found)
    assert any("dp_halfspace fit " in command for command in found)
    contributing = commands((ROOT / "docs" / "contributing.md").read_text())
    assert "sphinx-build -W docs docs/_build/html" in contributing


DEFAULTS = (ROOT / "docs" / "defaults.md").read_text()


def table(text: str, name: str) -> list[dict[str, str]]:
    """Rows of the marked tables of a page, which have one head, backticks removed."""
    bodies = re.findall(rf"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", text, re.DOTALL)
    tables = [
        [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
        for lines in (body.strip().splitlines() for body in bodies)
    ]
    return [dict(zip(tables[0][0], row, strict=True)) for cells in tables for row in cells[2:]]


def value(expression: str, **names: float) -> float:
    """Evaluate a cell."""
    known = {"clamp": lambda x, low, high: min(max(x, low), high), "min": min, **names}
    return float(eval(expression, {"__builtins__": {}}, known))


def wrong_numbers(text: str) -> list[str]:
    """Rows of the tables of single numbers that are not those of the code."""
    wrong = []
    for row in table(text, "numbers"):
        module, name = row["in the code"].rsplit(".", 1)
        if getattr(import_module(f"dp_halfspace.{module}"), name) != value(row["value"]):
            wrong.append(row["constant"])
    return wrong


# Modules all of whose single numbers are defaults.
COMPLETE = (
    "selection.rule",
    "engine.features",
    "engine.linear",
    "engine.moment",
    "engine.steps",
)


def unlisted_numbers(text: str) -> list[str]:
    """Single numbers of these modules that no row of the page names."""
    listed = {row["in the code"] for row in table(text, "numbers")}
    unlisted = []
    for module in COMPLETE:
        path = ROOT / "dp_halfspace" / f"{module.replace('.', '/')}.py"
        names = re.findall(r"^([A-Z_]+) = \d", path.read_text(), re.MULTILINE)
        unlisted += [name for name in names if f"{module}.{name}" not in listed]
    return unlisted


def test_constants_on_the_page_are_those_of_the_code():
    assert wrong_numbers(DEFAULTS) == []
    assert unlisted_numbers(DEFAULTS) == []


def unnamed_files(table: str) -> set[str]:
    """Files of a default fit that the text does not name."""
    package = Path(dp_halfspace.__file__).parent
    found = {path.relative_to(package).with_suffix("") for path in executed_files(None)}
    return {path.as_posix() for path in found if f"`{path.as_posix()}`" not in table}


CORE = (ROOT / "docs" / "architecture.md").read_text().partition("## The trusted core")[2]
CORE, OTHERS = CORE.partition("## Where")[0].split("The same fit executes")


def test_the_path_of_a_fit_names_every_file_that_it_executes():
    assert unnamed_files(CORE + OTHERS) == set()
    assert unnamed_files(CORE.replace("privacy/noise", "privacy/sound") + OTHERS) == {
        "privacy/noise"
    }


def test_the_trusted_core_is_as_small_as_the_page_says():
    assert {name for name in TRUSTED if f"`{name}`" not in CORE} == set()
    # A new process remembers nothing of earlier fits.
    with imported_anew("dp_halfspace", "benchmarks"):
        lines = import_module("benchmarks.default_path").trusted_lines()
    assert lines.keys() == set(TRUSTED)
    assert "at most 1,900" in CORE
    assert sum(lines.values()) <= 1900, lines


def test_one_place_turns_on_the_links_of_the_site():
    settings = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    project = (ROOT / "pyproject.toml").read_text()
    assert "use_edit_page_button" not in settings["html_theme_options"]
    assert settings["addresses"](project) == {}
    stated = re.sub(r"(?m)^# (?=\[project.urls\]|Repository|Documentation)", "", project)
    found = settings["links"](settings["addresses"](stated))
    assert found["html_context"]["github_user"] == "OWNER"
    assert found["html_context"]["doc_path"] == "docs"
    assert found["html_theme_options"]["use_edit_page_button"]
    assert found["html_baseurl"].endswith("/dp_halfspace/")


def test_a_formula_that_the_site_does_not_read_is_reported():
    read = '<code>$a</code> <pre><span>$b</span></pre> <span class="math x">\\(c\\)</span>'
    unread = runpy.run_path(str(ROOT / "docs" / "conf.py"))["unread_formulas"]
    assert unread(read) == []
    assert unread(f"{read}, hence\n$$d$$") == ["$$d$$"]


# Words of our own, and what the field says.
OLD_WORDS = {
    r"\bholes\b": "missing values",
    r"\bpaid for\b|\bpays for\b": "accounted for",
    r"\blarger class\b": "majority class",
    r"\bpeers?\b(?!_)": "baselines, other libraries",
    r"\blearnt units\b|\bnatural units\b": "column scales, different units",
    r"\blearnt (?:column )?scales\b": "estimated column scales",
    r"\bunit rows?\b": "normalised rows",
    r"\b(?:private|stated) units\b": "column scales",
    r"\bpurely private\b": "pure DP",
    r"\bleave it away\b": "leave it out",
    r"\bbooked\b": "accounted for",
    r"\blaws?\b": "distributions",
    r"\bchances\b": "probabilities",
}
# The same for pages alone: in the code some of them are names, or words of a message.
OLD_WORDS_OF_PAGES = {
    **OLD_WORDS,
    r"\bpure (?:epsilon|\$\\epsilon\$)(?!-differential| among)": "pure DP, epsilon-DP",
    r"\bunits of (?:the )?columns\b|\b(?:learned|private) units\b": "column scales",
    r"\btexts? among\b|\bof texts\b": "strings",
    r"\bbought\b|\bbudget buys\b|\bbuys an?\b": "takes budget, is spent on",
    r"\bchoices? on the way\b|\bbudgets by earlier results\b": "fully adaptive composition",
    r"\boracle\b": "exact moments, non-private preprocessing",
    r"\bfrom (?:the )?inside\b|\baudits? from outside\b": "white-box, black-box",
    r"\boctaves?\b": "powers of two",
    r"\btally\b": "histogram",
    r"\bon the safe side of\b|\btaken at their word\b": "bounded by, calibrated",
    r"\bstood for by\b": "simulated by",
    r"\bbeside\b": "compared with, next to",
    r"\bwhoever\b": "anyone who",
    r"\bbut for\b": "except for, except with probability",
    r"\bin the place of\b": "instead of",
    r"\btruth values?\b": "boolean",
    r"\bstored text\b": "converted text",
    r"\bshared tables?\b": "real tables",
    r"\bsafe side\b": "conservatively",
    r"\bthe engine\b": "the gradient steps",
    r"\bbehind (?:the|its|a private) (?:map|preconditioner)\b": "after",
}
# Where a reader starts: nothing that only the glossary, or only the proofs, explain.
FIRST_PAGES = [page for page in PAGES if page.parent.name in ("guide", "tutorials", "estimators")]
FIRST_PAGES += [ROOT / "README.md"]
FIRST_PAGES += [
    ROOT / "docs" / f"{name}.md" for name in ("index", "start", "guide", "command", "explaining")
]
WORDS_OF_FIRST_PAGES = {
    r"(?<!model )\bcards?\b": "model card",
    r"\bcap(?:s|ped)?\b": "total budget",
    r"\bpermits?\b": "what the ledger allows",
    r"\bdirections?\b(?! of writing)": "hyperplanes, coefficients, principal components",
    r"\bhalfspaces?\b": "linear boundary",
    r"\btilt(?:s|ed)?\b": "emphasises badly predicted records",
    r"\bmade[- ]up\b": "synthetic, simulated",
    r"\bcoins?\b": "random guessing, chance level",
    r"\btells? of\b": "reveals",
}


def old_words(text: str, words: dict[str, str] = OLD_WORDS) -> list[str]:
    """Words of the list in the running text of a page: code and links are left out."""
    prose = re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", FENCE.sub("", text)).lower()
    return [found[0] for pattern in words for found in re.finditer(pattern, prose)]


PAPERS = (ROOT / "docs" / "papers.md").read_text()


def rows_out_of_place(text: str) -> list[str]:
    """Rows of a table of a paper without a line of its text, or before an earlier one."""
    wrong = []
    for table in re.findall(r"^\| place .*\n\|[-|]*\n((?:\|.*\n)+)", text, re.MULTILINE):
        last = 0
        for row in table.splitlines():
            found = re.search(r"\[(\d+)\]", row.split("|")[1])
            if found is None or int(found[1]) < last:
                wrong.append(row)
            else:
                last = int(found[1])
    return wrong


def test_rows_of_the_papers_stand_in_their_order():
    assert PAPERS.count("| place |") == 5
    assert rows_out_of_place(PAPERS) == []
    moved = PAPERS.replace("Lemma A.9 [483]", "Lemma A.9 [83]").replace("Table 1 [55]", "Table 1")
    assert [row[2:9] for row in rows_out_of_place(moved)] == ["Lemma A", "Table 1"]


def test_names_of_the_papers_can_be_imported():
    names = re.findall(r"`(theory|privacy|projection|inspection)\.([\w.]+)", PAPERS)
    assert len(names) > 40
    for package, name in names:
        *path, last = name.split(".")
        assert hasattr(import_module(".".join(["dp_halfspace", package, *path])), last), name


def absent_names(text: str) -> list[str]:
    """Parameters of classes, and methods of ledgers and records, on a page and not in the code."""
    absent = []
    for kind in (getattr(dp_halfspace, name) for name in dp_halfspace.__all__):
        if hasattr(kind, "_get_param_names"):
            calls = re.findall(rf"\b{kind.__name__}\(([^()`\n]*)\)", text)
            named = {name for call in calls for name in re.findall(r"(\w+)=", call)}
            absent += [f"{kind.__name__}({name}=)" for name in named - {*kind._get_param_names()}]
    for place, kind in (("ledger", PrivacyLedger), ("privacy_", PrivacyRecord)):
        named = {*re.findall(rf"`(?:\w+\.)?{place}\.(\w+)", text)}
        absent += [f"{place}.{name}" for name in named if not hasattr(kind, name)]
    return absent


def test_parameters_and_methods_that_pages_name_are_there():
    found = {page.name: absent_names(page.read_text()) for page in PAGES}
    assert {name: absent for name, absent in found.items() if absent} == {}
    text = "`AdaptiveMarginClassifier(epsilon=1, tilt=2)`, `ledger.spent()`, `ledger.part`"
    assert absent_names(text) == ["AdaptiveMarginClassifier(tilt=)", "ledger.part"]


def test_pages_speak_the_language_of_the_field():
    for page in PAGES:
        assert old_words(page.read_text(), OLD_WORDS_OF_PAGES) == [], page


def test_first_pages_need_no_glossary():
    """But for titles of papers, which are in italics."""
    for page in FIRST_PAGES:
        text = re.sub(r"(?<!\*)\*[^*\n]+\*(?!\*)", "", page.read_text())
        assert old_words(text, WORDS_OF_FIRST_PAGES) == [], page


@pytest.fixture(scope="module")
def trees():
    """Trees of all modules of the package, which several tests walk."""
    paths = sorted((ROOT / "dp_halfspace").rglob("*.py"))
    gc.disable()  # Searches among hundreds of thousands of nodes would take half of the time.
    try:
        return {path: list(ast.walk(ast.parse(path.read_text()))) for path in paths}
    finally:
        gc.enable()


def texts_of(nodes):
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_docstrings_and_messages_speak_the_language_of_the_field(trees):
    for path, nodes in trees.items():
        assert old_words(" ".join("\n".join(texts_of(nodes)).split())) == [], path


def pages_in_messages(nodes):
    """Texts of a module that name a page of the repository, without docstrings.

    Who has installed the package has no such file.
    """
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.search(r"\bdocs/|\w\.md\b", node.value) and id(node) not in docstrings
    ]


def test_messages_name_no_page_that_an_installed_user_does_not_have(trees):
    for path, nodes in trees.items():
        assert pages_in_messages(nodes) == [], path


PROOFS = {page.name: page.read_text() for page in (ROOT / "docs" / "proofs").glob("*.md")}
HEADS = ("Claim", "For whom", "Assumes", "In the code", "Tests")
KINDS_OF_CLAIMS = "Lemma|Theorem|Proposition|Corollary"


def wrong_heads(text: str) -> list[str]:
    """What the head of a proof does not say, and files that it names and that are not there."""
    head = text.partition("\n\n")[2].partition("\n\n")[0]
    said = dict(re.findall(r"^- \*\*(.*?)\.\*\* (.*)$", head, re.MULTILINE))
    wrong = [title for title in HEADS if title not in said]
    files = re.findall(
        r"`((?:tests/)?[\w/]+\.py)`", said.get("In the code", "") + said.get("Tests", "")
    )
    folders = {True: ROOT, False: ROOT / "dp_halfspace"}
    wrong += [file for file in files if not (folders[file.startswith("tests/")] / file).exists()]
    return wrong + ["In the code"] * (not files)


def test_proofs_say_what_they_claim_for_whom_and_where():
    assert {name: wrong for name in PROOFS if (wrong := wrong_heads(PROOFS[name]))} == {}


def dangling_references(text: str) -> list[str]:
    """References to sections and claims of proofs, and to other pages, that are not there."""
    flat = re.sub(r"\s*\n\s*#?\s*", " ", text)
    number = r"\d+(?:\.\d+)?a?"
    kinds = rf"sections?|{KINDS_OF_CLAIMS}|Lemmas|Theorems"
    parts = rf"(?:,? (?:and )?(?:{kinds})? ?{number}(?: (?:and|to) {number})?)*"
    found = []
    for page, tail in re.findall(rf"([a-z_]+\.md)`*\)?({parts})", flat):
        for kind, numbers in re.findall(
            rf"(section|{KINDS_OF_CLAIMS})s? ((?:{number}(?:,? and |, | to )?)+)", tail
        ):
            for one in re.findall(number, numbers):
                heading = rf"^#+ {one}[. ]" if kind == "section" else rf"\*\*{kind} {one}\b"
                if page in PROOFS and not re.search(heading, PROOFS[page], re.MULTILINE):
                    found.append(f"{page}, {kind} {one}")
    found += [page for page in re.findall(r"proofs/([a-z_]+\.md)", flat) if page not in PROOFS]
    cited = re.findall(r"docs/((?!proofs/)[a-z_/]+\.md)", flat)
    return found + [page for page in cited if not (ROOT / "docs" / page).exists()]


def test_references_to_proofs_are_there():
    for path in [*(ROOT / "dp_halfspace").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *PAGES]:
        text = path.read_text()
        if path != Path(__file__) and ".md" in text:
            assert dangling_references(text) == [], path


# What a reader decides by, on the page of every class.
OF_A_CLASS = (
    "Use it",
    "Do not use it",
    "Guarantee:",
    "Why it is private:",
    "(Departs|Not in a paper)",
)
CLASS_PAGES = {page.stem: page.read_text() for page in (ROOT / "docs" / "estimators").glob("*.md")}


def unsaid(page: str) -> list[str]:
    """What the page of a class does not say at the beginning of a point."""
    return [said for said in OF_A_CLASS if not re.search(rf"^- \*\*{said}", page, re.MULTILINE)]


def test_pages_of_classes_say_when_to_use_them_and_why_they_are_private():
    assert len(CLASS_PAGES) == 9
    assert {name: unsaid(page) for name, page in CLASS_PAGES.items() if unsaid(page)} == {}
    assert unsaid(CLASS_PAGES["auc"].replace("- **Guarantee:**", "- ")) == ["Guarantee:"]


def wrong_see_also(docstring: str) -> list[str]:
    """Lines of a section "See Also" that are neither an entry nor the continuation of one."""
    found = re.search(r"^See Also\n-+\n(.*?)(?:\n\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    entry = r" +\S|[\w.]+(, [\w.]+)*( : (?!.*\. [\w.]+ : ).*)?$"
    return [line for line in found[1].split("\n") if not re.match(entry, line)] if found else []


def test_entries_of_see_also_are_lines(trees):
    for path, nodes in trees.items():
        for node in nodes:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                assert wrong_see_also(ast.get_docstring(node) or "") == [], (path, node.name)


def absent_messages(page: str, texts: str) -> list[str]:
    """Messages of a table of which a part between dots is nowhere in the code."""
    cells = re.findall(r"^\| (`.*?`) \|", page.partition("## Messages")[2], re.MULTILINE)
    messages = [message for cell in cells for message in re.findall("`(.*?)`", cell)]
    return [
        message
        for message in messages
        if not all(part.strip() in texts for part in message.split("..."))
    ]


def test_messages_on_the_page_of_questions_are_those_of_the_code(trees):
    page = (ROOT / "docs" / "guide" / "questions.md").read_text()
    # Of formatted texts the parts between what is inserted.
    found = [" ".join(text.split()) for nodes in trees.values() for text in texts_of(nodes)]
    texts = "\n".join(found)
    assert page.partition("## Messages")[2].count("\n| `") > 10
    assert absent_messages(page, texts) == []
    changed = page.replace("is a weak guarantee", "is a feeble guarantee")
    assert absent_messages(changed, texts) == ["is a feeble guarantee"]


def absent_tests(text: str) -> list[str]:
    """Files and folders of tests that a page names and that are not there."""
    return [name for name in re.findall(r"`(tests/[\w/.]+)`", text) if not (ROOT / name).exists()]


def test_tests_that_pages_name_are_there():
    for page in PAGES:
        assert absent_tests(page.read_text()) == [], page
