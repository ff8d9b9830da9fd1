"""Minimisers with a certificate: a public tolerance that holds on every data set."""
