"""What the markdown of a page keeps of formulas, code, readings and lists."""

from __future__ import annotations

import pytest

from engine.pages.extract import extract_now
from engine.pages.fetch import EngineName, Fetched

ENGINES: tuple[EngineName, ...] = ("browser", "static")


def markdown_of(html: str, engine: EngineName = "browser", charset: str = "utf-8") -> str:
    url = "http://example.com/"
    page = Fetched(url, url, 200, "text/html", html=html, engine=engine, charset=charset)
    content = extract_now(page, "markdown").content
    assert isinstance(content, str)
    return content.strip()


@pytest.mark.parametrize("engine", ENGINES)
def test_each_reading_follows_its_own_signs(engine: EngineName) -> None:
    html = "<p>a<ruby>漢<rt>かん</rt>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>b</p>"
    assert markdown_of(html, engine) == "a漢(かん)字(じ)b"


def test_a_formula_of_katex_is_read_once() -> None:
    html = (
        '<p>Mass <span class="katex"><span class="katex-mathml"><math><semantics><mrow><mi>E</mi>'
        "<mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></mrow><annotation>E = mc^2"
        '</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">'
        "<span>E</span><span>=</span><span>mc2</span></span></span> counts.</p>"
    )
    assert markdown_of(html) == "Mass E=mc^2 counts."


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (
            "<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>c</mi></mfrac><mo>&lt;</mo><mn>3.5</mn>",
            "(a+b)/c<3.5",
        ),
        (
            "<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt><mroot><mi>y</mi><mn>3</mn></mroot>",
            "√(x+1)√(3&y)",
        ),
        ("<msub><mi>a</mi><mn>12</mn></msub><mo>\u2062</mo><mi>b</mi>", "a_12b"),
        (
            "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>",
            "∑_(i=1)^n",
        ),
        (
            "<mtable><mtr><mtd>1</mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd>3</mtd><mtd>4</mtd></mtr></mtable>",
            "[1, 2; 3, 4]",
        ),
    ],
)
def test_a_formula_in_one_line_keeps_its_meaning(formula: str, text: str) -> None:
    assert markdown_of(f"<p><math>{formula}</math></p>") == text


def test_a_formula_of_endless_depth_is_read() -> None:
    assert "x" in markdown_of(
        "<math>" + "<mrow>" * 900 + "<mi>x</mi>" + "</mrow>" * 900 + "</math>"
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "table",
    [
        "<table><tr><td><pre>1\n2</pre></td><td><div><pre>a\n  b</pre></div></td></tr></table>",
        "<table><tr><td><pre><i>1</i><br>2<br></pre></td>"
        "<td><pre><i>a</i><br>  b<br></pre></td></tr></table>",
        "<pre><code><table><tr><td><pre>1\n2</pre></td>"
        "<td><pre>a\n  b\n</pre></td></tr></table></code></pre>",
    ],
)
def test_code_beside_line_numbers_keeps_its_lines(engine: EngineName, table: str) -> None:
    assert markdown_of(table, engine) == "```\na\n  b\n```"


def test_the_name_of_a_file_stays_above_its_code() -> None:
    table = (
        "<table><tr><th colspan=2>a.py</th></tr>"
        "<tr><td><pre>1</pre></td><td><pre>if a &lt; b:\n  c</pre></td></tr></table>"
    )
    assert markdown_of(table) == "a.py\n\n```\nif a < b:\n  c\n```"


def test_code_in_a_table_of_words_stays_in_its_cell() -> None:
    table = (
        "<table><tr><td>before</td><td>after</td></tr>"
        "<tr><td><pre>a</pre></td><td><pre>b</pre></td></tr></table>"
    )
    assert "`a`" in markdown_of(table)
    assert markdown_of(table).count("|") > 6


@pytest.mark.parametrize("engine", ENGINES)
def test_forms_and_captions_stay_in_their_item(engine: EngineName) -> None:
    html = (
        "<ul><li>one<form><button>go</button></form></li>"
        "<li><figure><img src=i alt=A><figcaption>says</figcaption></figure></li></ul>"
    )
    assert markdown_of(html, engine) == (
        "- one\n\n  go\n\n- ![A](http://example.com/i)\n\n  *says*"
    )


def test_the_heading_of_a_summary_is_a_heading() -> None:
    html = "<details open><summary><h3>Why</h3></summary><p>So.</p></details>"
    assert markdown_of(html) == "### Why\n\nSo."


def test_links_of_a_static_page_are_sent_in_the_encoding_of_the_page() -> None:
    html = "<p><a href='/s?q=中文'>find</a> <a href=' JavaScript:go()'>go</a></p>"
    assert markdown_of(html, "static", "gbk") == "[find](http://example.com/s?q=%D6%D0%CE%C4) go"
    assert "q=%E4%B8%AD%E6%96%87" in markdown_of(html, "static")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_set_higher_is_no_further_digit(engine: EngineName) -> None:
    html = (
        "<p>5×10<sup>6</sup> m<sup class=e>2</sup> 10<sup>−3</sup> <i>x</i><sup>n</sup> "
        "Ca<sup>2+</sup> 1<sup>st</sup> says<sup><a href=#n>7</a></sup></p>"
        "<p><sup>7</sup> Note.</p>"
    )
    assert markdown_of(html, engine) == (
        "5×10^6 m^2 10^−3 *x*^n Ca^2+ 1st says[7](http://example.com/#n)\n\n7 Note."
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before", ["<ul><li>a</li></ul>", "<table><tr><td>a</td></tr></table>"])
def test_a_drawing_behind_a_list_or_table_is_no_part_of_it(engine: EngineName, before: str) -> None:
    last = markdown_of(f"{before}\n<svg><g><text>axis</text></g></svg>", engine).split("\n\n")[-1]
    assert last == "axis"


def test_a_formula_in_a_table_of_code_is_written_as_everywhere() -> None:
    html = "<table><tr><td>1</td><td><pre>a <math><mi>x</mi></math> b</pre></td></tr></table>"
    assert "a x b" in markdown_of(html)
