"""What several tests of public maps need."""

import numpy as np
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel


def matrix_of(linear_map):
    """Matrix of a linear map, of shape (n_components, n_features_in)."""
    return linear_map.pull_back(np.eye(linear_map.n_components))


def kernel_at(spectrum, differences):
    """Kernel at differences of points, by scikit-learn."""
    points = differences.reshape(-1, differences.shape[-1])
    origin = np.zeros((1, points.shape[1]))
    kernel = {
        "rbf": lambda: rbf_kernel(points, origin, gamma=0.5),
        "laplacian": lambda: laplacian_kernel(points, origin, gamma=1.0),
        "matern": lambda: Matern(nu=spectrum.nu)(points, origin),
    }[spectrum.kernel]
    return kernel().reshape(differences.shape[:-1])
