"""Contracts and task runs: what a goal asks for, what was done of it, and when it is reached."""
