"""Functions of the coefficients: losses, margins, softmax, pairs, tilts and adversaries."""
