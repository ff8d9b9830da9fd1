"""The default: private column scales, preconditioner, noisy gradient descent."""
