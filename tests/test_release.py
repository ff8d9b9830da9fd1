"""What a release promises: one version everywhere, and types that a user's file is checked by."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dp_halfspace

ROOT = Path(__file__).resolve().parents[1]
USER = """
import numpy as np
from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger
from dp_halfspace.privacy import PrivacyRecord

X = np.zeros((4, 2))
model: AdaptiveMarginClassifier = AdaptiveMarginClassifier(epsilon=1.0, classes=[0, 1])
record: PrivacyRecord = model.fit(X, [0, 1, 0, 1]).privacy_
cost: float = record.epsilon_at(1e-6)
events: list[dict[str, object]] = record.to_dp_events()
ledger = PrivacyLedger(epsilon=2.0, delta=1e-6)
"""


def cited_version() -> str:
    """Version that the citation file names."""
    (found,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    return found


def test_the_citation_names_this_version():
    assert cited_version() == dp_halfspace.__version__


def checked(folder: Path, code: str) -> str:
    """What mypy says of a file of a user."""
    pytest.importorskip("mypy")
    (folder / "user.py").write_text(code)
    options = ["--strict", "--ignore-missing-imports", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, "--config-file=", "user.py"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.slow
def test_a_file_of_a_user_is_typed(tmp_path):
    assert "Success" in checked(tmp_path, USER)
    wrong = USER + "epsilon: str = record.epsilon\nAdaptiveMarginClassifier(epsilon='1')\n"
    found = checked(tmp_path, wrong)
    assert "Found 2 errors" in found, found
