"""Profiles: named sign-ins of sites, kept outside of every ledger."""
