"""A retry of failed pages loads them as the crawl did."""

from __future__ import annotations

from engine.kinds.arguments import CREDENTIALS
from engine.kinds.crawl.crawl_args import ACCESS_ARGUMENTS, PAGE_ARGUMENTS
from engine.service.rerun import _PAGE_OPTIONS

LIMITS_AND_FAULTS = {"max_pages", "maxPages", "max_minutes", "max_bytes", "failOnPage"}
# User and password are for the site of the first address, and that of a retry may be another one.
OF_ONE_SITE = CREDENTIALS.keys()


def test_every_option_of_loading_a_page_is_kept_by_a_retry() -> None:
    of_pages = PAGE_ARGUMENTS.keys() | ACCESS_ARGUMENTS.keys()
    assert of_pages - LIMITS_AND_FAULTS - OF_ONE_SITE == _PAGE_OPTIONS
