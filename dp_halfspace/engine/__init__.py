"""The default training: a fit is a list of releases."""
