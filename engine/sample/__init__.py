"""Sample web site on this machine: for the sample crawl, tests and benchmarks."""
