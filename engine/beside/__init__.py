"""Ledgers beside the program's own: what is asked of them, and what may not be."""
