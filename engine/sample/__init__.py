"""A small web site that runs on this machine: for the sample crawl, tests and benches."""
