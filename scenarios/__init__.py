"""Studies that a person runs, each as `python -m scenarios.NAME` or `netsim run NAME`; `--help` tells its arguments."""
