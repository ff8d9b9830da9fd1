"""The layout is the architecture: import ranks, no circles, one private door, lazy names."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import zipfile
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import dp_halfspace
from benchmarks.default_path import executed_files

ROOT = Path(dp_halfspace.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(p for p in ROOT.rglob("*.py"))

# A file imports lower ranks, or its own part of the package. `privacy` and `optim` are siblings
# that never meet: what optimises cannot draw or forget noise. `selection` and `papers` are siblings
# too, above `engine`: the default knows no paper. Nor do they know `ledger`: what is released does
# not know where it is accounted for.
RANKS = {
    "exceptions": 0,
    "_arrays": 0,
    "_files": 0,
    "_html": 0,
    "_memory": 0,
    "_rounding": 0,
    "_silence": 0,
    "_suggestion": 0,
    "_sklearn_compat": 0,
    "_params": 1,
    "data": 2,
    "_pipelines": 3,
    "projection": 3,
    "datasets": 3,
    "rows": 4,
    "privacy": 5,
    "optim": 5,
    "_repeated_fits": 6,
    "ledger": 6,
    "engine": 6,
    "theory": 6,
    "selection": 7,
    "papers": 7,
    "_budget": 7,
    "audit": 8,
    "preprocessing": 8,
    "estimators": 9,
    "inspection": 10,
    "metrics": 10,
    "model_selection": 11,
    "__init__": 11,
    "_cli": 12,
    "__main__": 13,
}
# Inside a part, folders and files beside them stand in a line too.
FLOORS = {
    "optim": (
        "losses", "objectives", "solvers", "certificate", "risks",
    ),
}  # fmt: skip
# What the papers may use of the engine: plans, steps and the second moment.
ENGINE_OF_PAPERS = {f"dp_halfspace.engine.{name}" for name in ("plan", "steps", "moment")}


def dotted(path: Path) -> str:
    relative = path.relative_to(ROOT.parent).with_suffix("")
    return ".".join(relative.parts).removesuffix(".__init__")


NAMES = {dotted(path): path for path in MODULES}


@cache
def parsed(source: str) -> ast.Module:
    """Tree of a file, which many tests walk."""
    return ast.parse(source)


def part_of(name: str) -> str:
    return [*name.split("."), "__init__"][1]


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All that is in a file."""
    return tuple(ast.walk(parsed(source)))


@cache
def imports(source: str) -> frozenset[str]:
    """Modules of the package that a file imports, for types or at run time."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dp_halfspace"):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (whole & NAMES.keys()) | ({node.module} if whole - NAMES.keys() else set())
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("dp_halfspace")}
    return frozenset(found)


def rank_violations(name: str, source: str) -> list[str]:
    part = part_of(name)
    return [m for m in imports(source) if part_of(m) != part and RANKS[part_of(m)] >= RANKS[part]]


def floor_violations(name: str, source: str) -> list[str]:
    part, floors = part_of(name), FLOORS.get(part_of(name), ())
    here = name.split(".")[2:3]
    if not here or here[0] not in floors:
        return []
    above = floors[floors.index(here[0]) + 1 :]
    return [m for m in imports(source) if part_of(m) == part and set(m.split(".")[2:3]) & {*above}]


def engine_violations(name: str, source: str) -> list[str]:
    """Files of the engine that a paper imports, except for plans, steps and the moment."""
    others = imports(source) - ENGINE_OF_PAPERS
    return [m for m in others if part_of(name) == "papers" and part_of(m) == "engine"]


def circles(graph: dict[str, frozenset[str]]) -> list[str]:
    """Modules that come back to themselves along imports."""
    reached = {name: set(targets) for name, targets in graph.items()}
    for middle in graph:
        for targets in reached.values():
            if middle in targets:
                targets |= reached[middle]
    return [name for name, targets in reached.items() if name in targets]


@pytest.fixture(scope="module")
def sources():
    """Sources of all modules."""
    return {name: path.read_text() for name, path in NAMES.items()}


def test_imports_only_lower_ranks(sources):
    for name, source in sources.items():
        assert part_of(name) in RANKS, f"{part_of(name)} has no rank: decide where it stands"
        found = floor_violations(name, source) + engine_violations(name, source)
        if part_of(name) != "__init__":
            found += rank_violations(name, source)
        assert not found, name


def test_no_circle_of_imports(sources):
    """Imports for types count: two files that need each other are one file."""
    assert not circles({name: imports(source) for name, source in sources.items()})


def private_imports(source: str) -> list[list[str]]:
    """Imports of underscored names of scikit-learn, and of threadpoolctl."""
    imported = []
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom):
            imported.append([*(node.module or "").split("."), *(a.name for a in node.names)])
        elif isinstance(node, ast.Import):
            imported += [a.name.split(".") for a in node.names]
    return [
        names
        for names in imported
        if names[0] == "threadpoolctl"
        or (names[0] == "sklearn" and any(part.startswith("_") for part in names))
    ]


def test_one_door_to_private_names(sources):
    """They come through _sklearn_compat.py alone."""
    with_them = {name for name, source in sources.items() if private_imports(source)}
    assert with_them == {"dp_halfspace._sklearn_compat"}


def shared_lines(source: str) -> list[str]:
    """Constants of a module that share a line, so that no comment can name the unit of each."""
    return [
        ast.unparse(node.targets[0])
        for node in parsed(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    ]


def constants_with_two_values(source: str) -> list[str]:
    """Constants that a module assigns twice: code above the second value uses that one, too."""
    names = [
        node.targets[0].id
        for node in parsed(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    return sorted({name for name in names if names.count(name) > 1})


def test_one_constant_has_one_line_and_one_value(sources):
    for name, source in sources.items():
        assert not shared_lines(source), name
        assert not constants_with_two_values(source), name


BULLETS = ("Adjacency", "Released", "Sensitivity", "Proof")
DRAWS = {"release", "release_of_block", "choose", "consume", "parallel"}


def unstated_releases(source: str) -> list[str]:
    """Functions that draw from a permit and do not say in bullets what they guarantee."""
    found = []
    tree = parsed(source)
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.FunctionDef):
            drawn = [
                call.func.attr
                for call in ast.walk(node)
                if isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and isinstance(call.func.value, ast.Name)
                and call.func.value.id != "self"
            ]
            doc = ast.get_docstring(node) or ""
            stated = "**Guarantee.**" in doc and all(f"- {name}: " in doc for name in BULLETS)
            found += [node.name] * (bool(DRAWS & {*drawn}) and not stated)
    return found


def test_what_draws_a_release_states_its_guarantee(sources):
    """Adjacency, what is released, sensitivity and proof, where the noise is asked for."""
    # The door states it for all of its methods.
    for name in sources.keys() - {"dp_halfspace.privacy.door"}:
        assert not unstated_releases(sources[name]), name


def test_one_estimator_per_file():
    for path in set((ROOT / "estimators").glob("*.py")) - {ROOT / "estimators" / "base.py"}:
        classes = [n for n in parsed(path.read_text()).body if isinstance(n, ast.ClassDef)]
        assert len([c for c in classes if c.name.endswith("Classifier")]) <= 1, path.name


PUBLIC = [
    "", ".privacy", ".optim", ".projection", ".preprocessing", ".inspection", ".datasets",
    ".model_selection", ".metrics", ".audit", ".theory",
]  # fmt: skip


@cache
def words_of_tests() -> set[str]:
    return {word for path in TESTS.rglob("*.py") for word in re.findall(r"\w+", path.read_text())}


def public_names(package: str) -> list[str]:
    """Names that a package hands out: what its file imports under its own name."""
    module = importlib.import_module(f"dp_halfspace{package}")
    tree = parsed(Path(module.__file__).read_text())
    return [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ] or module.__all__


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_has_its_tests(package):
    """What a user can import and call is used in the tests, not only in its own example."""
    module = importlib.import_module(f"dp_halfspace{package}")
    values = {name: getattr(module, name) for name in public_names(package)}
    # A protocol or an alias is only a type.
    called = [n for n, v in values.items() if callable(v) and not getattr(v, "_is_protocol", False)]
    assert called
    assert not [n for n in called if n not in words_of_tests()]


def test_names_for_types_are_those_that_are_loaded():
    """Type checkers and editors read the imports, of which the package makes none itself."""
    tree = parsed(Path(dp_halfspace.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    homes = {
        alias.name: node.module.partition(".")[2] for node in block.body for alias in node.names
    }
    parts = dict.fromkeys(dp_halfspace._PARTS, "")
    assert homes == {**parts, **dp_halfspace._HOMES}


@pytest.mark.parametrize("package", PUBLIC[1:])
def test_no_module_takes_the_place_of_a_public_name(package):
    module = importlib.import_module(f"dp_halfspace{package}")
    parts = {path.stem for path in Path(module.__file__).parent.iterdir()}
    assert package == ".datasets" or not [n for n in public_names(package) if n in parts]


WITHOUT_FILES = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import dp_halfspace
from dp_halfspace._cli import main
assert dp_halfspace.__file__.startswith(sys.argv[1])
for name in dp_halfspace.__all__:
    assert getattr(dp_halfspace, name) is not None
X = [[float(i % 7), float(i % 3)] for i in range(60)]
model = dp_halfspace.AdaptiveMarginClassifier(epsilon=20.0, classes=[0, 1])
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    model.fit(X, [0, 1, 1] * 20).predict(X)
print({warning.filename for warning in said})
main(["--version"])
"""


@pytest.mark.slow
def test_the_package_works_from_a_zip_without_its_sources(tmp_path):
    """Nor does it look for its files to say which line of a user a warning is about."""
    archive, script = tmp_path / "packed.zip", tmp_path / "script.py"
    with zipfile.PyZipFile(archive, "w") as packed:
        packed.writepy(ROOT)
        names = packed.namelist()
    assert len(names) == len(MODULES)
    assert all(name.endswith(".pyc") for name in names)
    script.write_text(WITHOUT_FILES)
    command = [sys.executable, str(script), str(archive)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0] == str({str(script)})
    assert run.stdout.splitlines()[-1] == f"dp_halfspace {dp_halfspace.__version__}"


# Each part after those that it imports, all in one process, as every new one loads NumPy again.
PARTS = (
    "exceptions", "projection", "datasets", "privacy", "optim", "theory", "preprocessing",
    "estimators", "audit", "inspection", "metrics", "model_selection",
)  # fmt: skip
STAGES = {"": "import dp_halfspace; dir(dp_halfspace)"}
STAGES |= {part: f"dp_halfspace.{part}" for part in PARTS}
STAGES["estimators"] += "; dp_halfspace.OutputPerturbationClassifier"


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """Modules that a new process has loaded after each stage."""
    code = "\n".join(f"{each}\nimport sys; print(*sys.modules)" for each in STAGES.values())
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(zip(STAGES, map(set, map(str.split, out.stdout.splitlines())), strict=True))


def test_import_loads_nothing_heavy(loaded):
    assert not loaded[""] & {"numpy", "scipy", "sklearn", "joblib", "pandas", "matplotlib"}


def test_estimators_load_no_more_than_they_need(loaded):
    heavy = {"sklearn.linear_model", "sklearn.svm", "sklearn.model_selection", "matplotlib"}
    assert not loaded["estimators"] & heavy


def test_every_part_is_an_attribute_and_loads_nothing_before(loaded):
    assert {*PARTS} == {"estimators", "exceptions", *(each[1:] for each in PUBLIC[1:])}
    for before, part in pairwise(STAGES):
        assert f"dp_halfspace.{part}" in loaded[part] - loaded[before]
    assert {*PARTS} <= {*dp_halfspace.__all__}


@pytest.mark.parametrize("data_norm", [1.0, None])
def test_the_files_that_a_default_fit_executes_are_listed(data_norm):
    found = {path.relative_to(ROOT).as_posix() for path in executed_files(data_norm)}
    assert {"engine/steps.py", "privacy/mechanisms.py"} <= found
    others = (
        "papers/", "selection/small", "selection/column", "estimators/_ranking",
        "estimators/_centred", "estimators/kernel", "ledger", "optim/solvers",
        "privacy/exponential", "privacy/random_stopping", "projection/features",
    )  # fmt: skip
    assert not [name for name in found if name.startswith(others)]


def test_public_names_resolve():
    for name in dp_halfspace.__all__:
        assert getattr(dp_halfspace, name) is not None
        assert name in dir(dp_halfspace)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dp_halfspace.no_such_name
    assert (ROOT / "py.typed").exists()


def changers_of_filters(sources: dict[str, str]) -> set[str]:
    """Files whose code changes the warning filters; examples in docstrings do not count."""
    return {
        name
        for name, source in sources.items()
        for node in nodes(source)
        if isinstance(node, ast.Attribute) and node.attr == "catch_warnings"
    }


def test_one_file_changes_the_warning_filters_that_threads_share():
    """The others are the command, a process of its own, and an audit, which records warnings."""
    own = {"_silence.py", "_cli/commands.py", "audit/white_box.py"}
    sources = {path.relative_to(ROOT).as_posix(): path.read_text() for path in MODULES}
    assert changers_of_filters(sources) == own
    planted = {"a.py": "import warnings\nwith warnings.catch_warnings():\n    pass\n"}
    assert changers_of_filters(planted) == {"a.py"}
