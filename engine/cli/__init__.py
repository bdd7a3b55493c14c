"""`octask`, the command line; the only package of the engine that reads the environment."""
