"""Ranking by the area under the ROC curve, and its threshold."""
