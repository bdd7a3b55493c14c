"""The sample site serves its documented pages, the same on every run."""

import http.client
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from engine.sample.site import is_late, marker, numbers_from, page_html
from fixtures.site.site import Site


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.read().decode()


def until(condition, limit_s=60.0):
    ends = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.005)  # no event to wait for: another process changes it


def test_every_page_of_a_tree_is_reached_from_its_root():
    seen, queue = {0}, [0]
    for number in queue:
        new = [other for other in numbers_from(number, 500) if other not in seen]
        seen.update(new)
        queue.extend(new)
    assert seen == set(range(501))


def test_a_static_page_has_its_marker_and_a_late_page_has_not(site):
    assert marker(7) in get(f"{site.url}/static/7")[1]
    assert marker(7) not in get(f"{site.url}/js/7")[1]
    assert marker(7) in get(f"{site.url}/api/js/7")[1]


def test_two_sites_serve_the_same_bytes():
    with Site(pages=9) as one, Site(pages=9) as two:
        for path in ("/", "/static/", "/js/3", "/api/page/3"):
            assert get(one.url + path) == get(two.url + path)


def test_the_mixed_tree_has_pages_of_both_sorts():
    late = [number for number in range(30) if is_late("page", number)]
    assert 0 < len(late) < 30
    assert b"page.js" in page_html("page", late[0], 30)


@pytest.mark.parametrize("path", ["/static/51", "/static", "/js/x", "/api/none/1", "/nowhere"])
def test_what_is_not_there_is_404(site, path):
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(site.url + path)
    refused.value.close()
    assert refused.value.code == 404


def test_requests_are_counted_by_path(site):
    get(f"{site.url}/static/1?x=1")
    get(f"{site.url}/static/1?x=2")
    assert site.hits["/static/1"] == 2
    assert [target for _, target in site.log] == ["/static/1?x=1", "/static/1?x=2"]


def test_one_connection_serves_many_requests(site):
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    for number in range(20):
        connection.request("GET", f"/static/{number or ''}")
        assert connection.getresponse().read()
    connection.close()


def test_a_site_stops_while_a_page_hangs():
    with Site(pages=1) as site:
        connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
        connection.request("GET", "/hang")
        until(lambda: site.hits["/hang"])
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()


def test_robots_carries_the_crawl_delay_and_can_be_replaced():
    with Site(pages=1, crawl_delay=0.5) as site:
        assert "Crawl-delay: 0.5" in get(f"{site.url}/robots.txt")[1]
        site.robots = "User-agent: *\nDisallow: /\n"
        assert get(f"{site.url}/robots.txt")[1] == "User-agent: *\nDisallow: /\n"


def test_every_odd_page_answers_or_is_meant_not_to(site):
    body = get(f"{site.url}/odd/")[1]
    for path in ("/hang", "/redirect/40", "/files/archive.zip", "/dialogs"):
        assert f'href="{path}"' in body


def test_the_program_prints_its_address_first():
    program = subprocess.Popen(
        [sys.executable, "-m", "fixtures.site", "--port", "0", "--pages", "3"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    try:
        url = program.stdout.readline().strip()
        assert get(f"{url}/static/3")[0] == 200
    finally:
        program.terminate()
        program.communicate(timeout=60)


def test_a_taken_port_is_told_in_a_sentence(site):
    ended = subprocess.run(  # noqa: PLW1510 - its exit code is what is tested
        [sys.executable, "-m", "fixtures.site", "--port", str(site.port)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert "cannot listen" in ended.stderr
    assert "Traceback" not in ended.stderr
