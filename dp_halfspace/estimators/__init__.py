"""The classifiers, one a file; their public names are those of the package itself."""
