"""Noisy sums over all records: gradient steps, second moments, class means."""
