"""Algorithms of the papers, as options of the estimators."""
