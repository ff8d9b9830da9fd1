"""Models in files: by skops, which runs nothing that it reads, or by joblib, which does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

import joblib

from dp_halfspace import PrivateTableClassifier
from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.places import write_whole
from dp_halfspace._cli.streams import say
from dp_halfspace._cli.tables import readable

# All that a fitted model of the command consists of, beside the types of numpy and scikit-learn
# that skops itself trusts. A name more would be a class that a file may build as it likes.
TRUSTED = tuple(
    f"dp_halfspace.{name}"
    for name in (
        "algorithms.engine.column_scales.Units",
        "estimators.adaptive_margin.AdaptiveMarginClassifier",
        "estimators.table.PrivateTableClassifier",
        "estimators.table._Engine",
        "preprocessing.cell_scaler.CellScaler",
        "preprocessing.cell_scaler.RowLengths",
        "privacy.events.Exponential",
        "privacy.events.Gaussian",
        "privacy.events.Pure",
        "privacy.events.Repeated",
        "privacy.record.PrivacyRecord",
        "projection.additive.AdditiveMap",
        "projection.fourier.FourierMap",
        "data.encoding.Encoding",
        "data.schema.Column",
    )
)


def check_kind(path: Path) -> None:
    """Refuse a file of a kind that cannot be read or written here, before any work is done."""
    if _is_skops(path):
        _skops()


def save_model(model: Any, path: Path) -> None:
    """Save a model by the library that the name of the file says."""
    dump = _skops().dump if _is_skops(path) else joblib.dump
    write_whole(path, lambda place: dump(model, place))


def load_model(path: Path, err: TextIO) -> Any:
    """Load a model that `fit` has saved."""
    check_kind(path)
    if not _is_skops(path):
        say(
            err,
            f"dp_halfspace: note: loading {path} runs the code that the file holds; load it only "
            "if you trust who made it, or have it saved as .skops, which runs none\n",
        )
    with readable(path):
        try:
            model = _from_skops(path) if _is_skops(path) else joblib.load(path)
        except (OSError, UserError):
            raise
        except Exception as error:
            raise ValueError("not a model") from error
    if not isinstance(model, PrivateTableClassifier) or not hasattr(model, "encoding_"):
        raise UserError(f"{path} holds no model of the command `fit`")
    return model


def _is_skops(path: Path) -> bool:
    """Tell whether a file is one of skops, by its name."""
    return path.suffix.lower() == ".skops"


def _skops() -> Any:
    """Return the library, which is optional."""
    try:
        import skops.io  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise UserError("files .skops need skops: pip install 'dp-halfspace[skops]'") from error
    return skops.io


def _from_skops(path: Path) -> Any:
    """Load a file whose types are all known."""
    library = _skops()
    others = sorted(set(library.get_untrusted_types(file=path)) - set(TRUSTED))
    if others:
        raise UserError(
            f"{path} holds types that no model of the command has, and is not loaded: "
            f"{', '.join(map(repr, others))}"
        )
    return library.load(path, trusted=list(TRUSTED))
