"""The machine-checked proofs, and the functions of the package that they are about.

``docs/proofs/machine`` has the proofs, `.ci/proofs` compiles them. This module reads what is kept
beside them, with the standard library alone: which definitions and statements are frozen, which
formula covers which expression of the code, and what was compiled last.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.mutants import _spans, _tokens

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "proofs" / "machine"
# In the order in which they are compiled.
SOURCES = (
    "Formulas", "Statements", "Vectors", "Sums", "Gradients", "Columns", "Choices", "Rounding",
    "Steps", "Floats", "Noise",
)  # fmt: skip
# Files whose definitions are what is claimed. The others contain proofs alone.
CLAIMS = ("Formulas", "Statements")
# The axioms on which the real numbers and their analysis rest in Coq's standard library.
AXIOMS = (
    "Classical_Prop.classic",
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
)

_SENTENCE = re.compile(
    r"^(?:Definition|Fixpoint|Inductive|Record|Arguments) (\w+).*?\.(?=\s*\n(?:\n|[A-Z(]|\Z))",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)


def source_of(name: str) -> str:
    """Return the text of a file of proofs."""
    return (FOLDER / f"{name}.v").read_text(encoding="utf-8")


def kept(name: str) -> Any:
    """Return what a file beside the proofs keeps."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def digest(text: str) -> str:
    """Return a digest of a text, however its words are spaced."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def definitions(name: str) -> dict[str, str]:
    """Return every definition of a file, without comments."""
    text = _COMMENT.sub("", source_of(name))
    found: dict[str, str] = {}
    for sentence in _SENTENCE.finditer(text):
        found[sentence[1]] = found.get(sentence[1], "") + sentence[0]
    return found


def statements() -> list[str]:
    """Return the names of the statements, in their order."""
    found = definitions("Statements").items()
    return [name for name, text in found if re.match(rf"Definition {name} : Prop :=", text)]


def formulas() -> list[str]:
    """Return the names of the formulas without parameters, in their order."""
    found = definitions("Formulas").items()
    return [name for name, text in found if re.match(rf"Definition {name} : formula :=", text)]


def frozen() -> dict[str, str]:
    """Return the digest of every definition and statement that is claimed."""
    return {
        f"{file}.{name}": digest(text)
        for file in CLAIMS
        for name, text in definitions(file).items()
    }


@dataclass(frozen=True)
class Covered:
    """An expression of the package that a statement covers, by a formula.

    `function` is a function, ``Class.method`` or a class of `file`. The tokens of `expression`
    occur once in it. `formula` is the one that the statement contains.
    """

    statement: str
    formula: str
    file: str
    function: str
    expression: str

    @property
    def tokens(self) -> list[str]:
        """The tokens of the function, without comments and without its docstring."""
        source = (ROOT / "dp_halfspace" / self.file).read_text(encoding="utf-8")
        places = [span[1:] for span in _spans(source) if span[0] == self.function]
        if len(places) != 1:
            raise ValueError(f"{self.file} has {len(places)} functions {self.function}")
        start, end = places[0]
        return [text for text, _, _ in _tokens(source[start:end]) if '"""' not in text]

    @property
    def occurrences(self) -> int:
        """How often the expression occurs in the function."""
        tokens, wanted = self.tokens, [text for text, _, _ in _tokens(self.expression)]
        starts = range(len(tokens) - len(wanted) + 1)
        return sum(tokens[at : at + len(wanted)] == wanted for at in starts)


def covered() -> list[Covered]:
    """Return the map from statements to the code."""
    return [Covered(**entry) for entry in kept("map")]


def current() -> dict[str, str]:
    """Return digests of the proofs, of the map and of the functions in it, as they are now."""
    functions = sorted({(each.file, each.function): each for each in covered()}.items())
    texts = {
        "proofs": "".join(f"{name}\n{source_of(name)}" for name in SOURCES),
        "map": json.dumps([kept("map"), kept("formulas")]),
        "functions": "".join(f"{place} {each.tokens}" for place, each in functions),
    }
    return {name: digest(text) for name, text in texts.items()}


@lru_cache
def parsed(text: str) -> Any:
    """Return a formula as nested lists."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            last = stack.pop()
            stack[-1].append(last)
        else:
            stack[-1].append(token)
    ((tree,),) = stack
    return tree


def value(tree: Any, known: Mapping[str, float]) -> float:
    """Return the value of a formula, as `value` in ``Formulas.v`` does."""
    if isinstance(tree, str):
        return float(tree) if tree.isdigit() else known[tree]
    name, *parts = tree
    if name == "two":
        return math.ldexp(1.0, -int(parts[0]))
    numbers = [value(part, known) for part in parts]
    match name, numbers:
        case "plus", [a, b]:
            return a + b
        case "minus", [a, b]:
            return a - b
        case "times", [a, b]:
            return a * b
        case "over", [a, b]:
            return a / b
        case "least", [a, b]:
            return min(a, b)
        case "greatest", [a, b]:
            return max(a, b)
        case "root", [a]:
            return math.sqrt(a)
        case "exponential", [a]:
            return math.exp(a)
        case "floor", [a]:
            return float(math.floor(a))
    raise ValueError(f"{name} is not an operation of a formula")


@lru_cache
def _formulas() -> dict[str, str]:
    """Return the formulas by their names: they are evaluated thousands of times."""
    return kept("formulas")


def evaluated(formula: str, **known: float) -> float:
    """Return the value of a formula by its name."""
    return value(parsed(_formulas()[formula]), known)
