"""What one record can do to a minimiser: bounds from public numbers."""
