"""Private training: where a minimiser or a sum over records meets its noise."""
