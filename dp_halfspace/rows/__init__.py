"""Rows as a solver reads them: scaled, mapped, in blocks or in chunks."""
