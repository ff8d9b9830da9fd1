"""The exponential mechanism over data-independent candidates."""
