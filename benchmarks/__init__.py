"""Accuracy and speed of the package beside what people use today; see README.md."""
