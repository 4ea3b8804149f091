"""Studies that a person runs, each as `python -m scenarios.NAME --help`."""
