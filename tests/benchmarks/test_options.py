"""Parameters are read from the command line as Python literals, or as strings."""

from benchmarks import options


def test_parameters_are_literals_or_strings():
    texts = ["margin=.05", "preconditioner=False", "loss=hinge", "n_hidden=(6,3)", "kernel=a=b"]
    assert dict(map(options.parameter, texts)) == {
        "margin": 0.05,
        "preconditioner": False,
        "loss": "hinge",
        "n_hidden": (6, 3),
        "kernel": "a=b",
    }


def test_means_and_errors_are_printed(capsys):
    options.main(["OutputPerturbationClassifier", "alpha=0.1", "--fits", "2", "--sets", "digits"])
    assert capsys.readouterr().out.startswith("digits, epsilon 1: 0.")
