"""A retry of failed pages loads them as the crawl did."""

from __future__ import annotations

from engine.kinds.crawl.crawl_args import PAGE_ARGUMENTS
from engine.service.rerun import _PAGE_OPTIONS

LIMITS_AND_FAULTS = {"max_pages", "maxPages", "max_minutes", "max_bytes", "failOnPage"}


def test_every_option_of_loading_a_page_is_kept_by_a_retry() -> None:
    assert PAGE_ARGUMENTS.keys() - LIMITS_AND_FAULTS == _PAGE_OPTIONS
