"""The layout is the architecture: import ranks, one private door, sizes, lazy names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dp_halfspace

ROOT = Path(dp_halfspace.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(p for p in ROOT.rglob("*.py"))

# A file imports lower ranks, or its own package.
RANKS = {
    "exceptions": 0,
    "_parameters": 0,
    "_sklearn": 1,
    "_validation": 1,
    "privacy": 2,
    "projection": 3,
    "optim": 3,
    "datasets": 3,
    "estimators": 4,
    "model_selection": 5,
    "inspection": 5,
    "_cli": 6,
    "__main__": 7,
    "__init__": 7,
}


def part_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imported_parts(tree: ast.AST) -> set[str]:
    """Parts of the package that a file imports at run time."""
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for child in ast.walk(statement)
    }
    parts = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dp_halfspace"):
            names = (node.module or "").split(".")
            parts |= {names[1]} if len(names) > 1 else {a.name for a in node.names}
        elif isinstance(node, ast.Import):
            names = [a.name.split(".") for a in node.names]
            parts |= {n[1] for n in names if n[0] == "dp_halfspace" and len(n) > 1}
    return parts


def rank_violations(part: str, source: str) -> list[str]:
    found = imported_parts(ast.parse(source))
    return [p for p in found if p != part and RANKS.get(p, -1) >= RANKS[part]]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_lower_ranks(path):
    part = part_of(path)
    assert part in RANKS, f"{part} has no rank: decide where it stands"
    if part != "__init__":
        assert not rank_violations(part, path.read_text())


def test_rank_test_sees_a_violation():
    assert rank_violations("privacy", "from dp_halfspace.optim.losses import Loss") == ["optim"]
    assert rank_violations("projection", "import dp_halfspace.optim.rows") == ["optim"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_one_door_to_private_names(path):
    """Underscored scikit-learn names and threadpoolctl come through _sklearn.py alone."""
    if path.name == "_sklearn.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [*module.split("."), *(a.name for a in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for a in node.names for part in a.name.split(".")]
        else:
            continue
        if names[0] in {"sklearn", "threadpoolctl"}:
            assert names[0] == "sklearn"
            assert not any(n.startswith("_") for n in names), names


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    body = node.body
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    docstring = (body[0].end_lineno - body[0].lineno + 1) if has_docstring else 0
    return node.end_lineno - node.lineno + 1 - docstring


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert code_lines(node) <= 50, node.name


def test_one_estimator_per_file():
    for path in (ROOT / "estimators").glob("*.py"):
        classes = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]
        assert len([c for c in classes if c.name.endswith("Classifier")]) <= 1, path.name


@pytest.mark.parametrize(
    "path",
    [p for p in MODULES if not p.name.startswith("_")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_module_has_its_tests(path):
    relative = path.relative_to(ROOT)
    folder = TESTS.joinpath(*(part.lstrip("_") for part in relative.parts[:-1]))
    assert (folder / f"test_{relative.stem.lstrip('_')}.py").exists()


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


def test_import_loads_nothing_heavy():
    loaded = loaded_after("import dp_halfspace; dir(dp_halfspace)")
    assert not loaded & {"numpy", "scipy", "sklearn", "joblib", "pandas", "matplotlib"}


def test_an_estimator_loads_no_more_than_it_needs():
    loaded = loaded_after("from dp_halfspace import OutputPerturbationClassifier")
    heavy = {"sklearn.linear_model", "sklearn.svm", "sklearn.model_selection", "matplotlib"}
    assert not loaded & heavy


def test_public_names_resolve():
    for name in dp_halfspace.__all__:
        assert getattr(dp_halfspace, name) is not None
        assert name in dir(dp_halfspace)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dp_halfspace.no_such_name
    assert (ROOT / "py.typed").exists()
