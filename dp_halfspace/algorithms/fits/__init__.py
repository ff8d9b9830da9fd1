"""What an estimator plans from public numbers and then runs."""
