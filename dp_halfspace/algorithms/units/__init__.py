"""The scale of every column, learnt privately."""
