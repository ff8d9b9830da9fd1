"""What several tests of public maps need."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel


def matrix_of(linear_map):
    """Matrix of a linear map, of shape (n_components, n_features_in)."""
    return linear_map.pull_back(np.eye(linear_map.n_components))


def kernel_at(differences):
    """Gaussian kernel at differences of points, by scikit-learn."""
    points = differences.reshape(-1, differences.shape[-1])
    origin = np.zeros((1, points.shape[1]))
    return rbf_kernel(points, origin, gamma=0.5).reshape(differences.shape[:-1])
