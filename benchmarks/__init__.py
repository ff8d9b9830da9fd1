"""Accuracy and speed of the package beside what people use today; see README.md."""

import warnings

# They fit public and simulated tables many times.
warnings.filterwarnings("ignore", ".*dp_halfspace.RepeatedFitWarning")
