"""The table of simulated patients in the package: how it was made.

``python -m tests.cli.example_table`` writes it again; no record is that of a person.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dp_halfspace

PATH = Path(dp_halfspace.__file__).parent / "_cli" / "examples" / "patients.csv"
_N_PATIENTS, _N_ROWS = 1500, 2000
_WARDS = ("cardiology", "general", "surgery", "urology")


def text() -> str:
    """Return the table: some patients have several stays, and some cells are missing."""
    rng = np.random.default_rng(20260101)
    sex, born = rng.random(_N_PATIENTS) < 0.5, rng.integers(1931, 2006, _N_PATIENTS)
    smokes = rng.random(_N_PATIENTS) < 0.3
    patient = np.concatenate(
        [np.arange(_N_PATIENTS), rng.integers(0, _N_PATIENTS, _N_ROWS - _N_PATIENTS)]
    )
    patient = rng.permutation(patient)
    age = 2026 - born[patient]
    ward = rng.integers(0, len(_WARDS), _N_ROWS)
    pressure = 110.0 + 0.4 * age + 8.0 * smokes[patient] + 14.0 * rng.standard_normal(_N_ROWS)
    creatinine = 55.0 + 0.5 * age + 15.0 * sex[patient] + 18.0 * rng.standard_normal(_N_ROWS)
    day = np.datetime64("2026-01-01") + rng.integers(0, 365, _N_ROWS)
    odds = 0.05 * (age - 58) + 0.035 * (pressure - 136) + 0.03 * (creatinine - 92) - 0.8
    odds += 0.9 * smokes[patient] + np.array([0.8, -0.6, 0.3, -0.2])[ward]
    outcome = rng.random(_N_ROWS) < 1.0 / (1.0 + np.exp(-odds))
    lines = ["patient,age,sex,pressure,creatinine,smoker,ward,admitted,outcome"]
    for i in range(_N_ROWS):
        gone = rng.random(3) < (0.02, 0.08, 0.03)
        cells = (
            f"P{patient[i] + 1:04d}",
            str(age[i]),
            "m" if sex[patient[i]] else "f",
            "" if gone[0] else f"{pressure[i]:.0f}",
            "" if gone[1] else f"{creatinine[i]:.0f}",
            "" if gone[2] else ("yes" if smokes[patient[i]] else "no"),
            _WARDS[ward[i]],
            str(day[i]),
            "yes" if outcome[i] else "no",
        )
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
