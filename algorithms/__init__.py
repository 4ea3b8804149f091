"""Arrays in, arrays out: ratings, data sets, update kernels, objective and metrics. Knows no network and no clock."""
