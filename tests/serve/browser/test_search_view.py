"""What the search view offers: examples, recent searches, pictures as questions, chips that stay in view."""

from __future__ import annotations

from typing import Any

from tests.serve.browser.cdp import Browser, Page
from tests.serve.fake_server import LOST

SETTLED = "document.querySelector('.results .badge') && !document.querySelector('.results[aria-busy]')"


def test_examples_can_be_clicked(page: Page, full: Any) -> None:
    page.open(full.address + "/")
    page.click("[aria-label=Try] a")
    page.wait(f"location.search === '?q=a+boat+leaves+the+harbour' && {SETTLED}")


def test_recent_searches_are_kept_here_until_that_is_turned_off(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=red+boat")
    page.wait(SETTLED)
    page.click(".results a.open")  # a search whose result was opened was meant
    page.wait("document.querySelector('dialog')")
    page.open(full.address + "/")
    page.wait("document.querySelector('[aria-label=Recent] a')?.textContent === 'red boat'")
    page.open(full.address + "/?view=settings")
    page.wait("document.querySelector('#recent')?.checked")
    page.click("#recent")
    assert page.js("JSON.parse(localStorage.getItem('wordreel.recent'))") == {"on": False, "queries": []}
    page.open(full.address + "/?q=blue+boat")
    page.wait(SETTLED)
    page.click(".results a.open")
    page.wait("document.querySelector('dialog')")
    page.open(full.address + "/")
    page.wait("document.querySelector('[aria-label=Try]')")
    assert not page.js("Boolean(document.querySelector('[aria-label=Recent]'))")
    page.js("localStorage.clear()")


def test_a_moment_as_the_question_shows_its_picture_and_time(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=boat")
    page.click(".card .like")
    page.wait("document.querySelector('.question img')?.naturalWidth > 0")
    assert (
        page.js("document.querySelector('.question').textContent") == "Like harbour at dawn.mp4, 0:02 – 0:06"
    )
    page.wait(SETTLED)
    words = page.js("[...document.querySelectorAll('.results .sure')].map(s => s.textContent)")
    assert words[0] == "the same file"
    assert words[1].endswith("% alike")
    page.click(".question")
    page.wait("location.search === '' && !document.querySelector('.question')")


def test_long_shots_get_one_line_over_all_pages(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=sureshots")
    page.wait(SETTLED)
    assert not page.js("Boolean(document.querySelector('.divide'))"), "24 that are likely"
    page.click(".more")
    page.wait("document.querySelectorAll('.results .card').length === 48")
    order = page.js(
        "[...document.querySelectorAll('.grid > *')].map(c => c.matches('.divide') ? -1 : "
        "parseInt(c.querySelector('.sure').textContent.replace('under 1', '0')))"
    )
    assert order.count(-1) == 1
    at = order.index(-1)
    assert min(order[:at]) >= 5 > max(order[at + 1 :])
    assert order[:at] == sorted(order[:at], reverse=True)


def test_chips_stay_in_view_on_a_phone(browser: Browser, full: Any) -> None:
    page = browser.page(390, 844, phone=True)
    page.open(full.address + "/?q=boat&kind=video&moments=1&compare=&norm=dis")
    page.wait(SETTLED)
    page.js("scrollTo(0, 2000)")
    page.wait("scrollY > 1000")
    top = page.js("document.querySelector('.chosen .chip').getBoundingClientRect().top")
    assert 0 <= top < 100
    assert page.js("document.querySelectorAll('.chosen .chip').length") == 3
    page.js("scrollTo(0, 0)")
    page.click(".tool[aria-controls=filters]")
    page.click(".ranking-fields .tool")
    page.wait("document.querySelectorAll('.ranks').length === 2")
    page.close()


def test_messages_have_no_words_of_machines(page: Page, full: Any) -> None:
    """No view names a command, a route, or a notion of researchers outside of Settings, Ranking."""
    for address in ("/", "/?q=boat", f"/?q=boat&video={0:064x}", "/?view=library", "/?view=settings"):
        page.open(full.address + address)
        page.wait(
            "document.querySelector('.card, .table li, #log') && !document.querySelector('[aria-busy]')"
        )
        words = page.js(
            "document.querySelector('main').innerText + (document.querySelector('dialog')?.innerText ?? '')"
        )
        for word in (
            "/api/",
            "--",
            "wordreel serve",
            "wordreel add",
            "bank",
            "hubness",
            "Robin Hood",
            "expert",
            "embed",
        ):
            assert word.lower() not in words.lower(), (address, word)


def test_the_list_menu_fits_a_phone(browser: Browser, full: Any) -> None:
    page = browser.page(390, 844, phone=True)
    page.open(full.address + "/?q=boat")
    page.wait(SETTLED)
    page.click(".menu summary")
    page.wait("document.querySelector('.menu[open] a')?.checkVisibility()")
    box = page.js(
        "(({left, right}) => [left, right])(document.querySelector('.menu ul').getBoundingClientRect())"
    )
    assert box[0] >= 0
    assert box[1] <= 390
    assert page.js("document.documentElement.scrollWidth") <= 390
    page.close()


def test_escape_and_a_click_elsewhere_close_what_is_open_and_nothing_more(page: Page, full: Any) -> None:
    for opener, is_open in (
        (".menu summary", "document.querySelector('.menu').open"),
        (".card [aria-expanded]", "document.querySelector('.card [aria-expanded]').ariaExpanded === 'true'"),
    ):
        page.open(full.address + "/?q=boat")
        page.wait(SETTLED)
        for dismiss in (lambda: page.key("Escape"), lambda: page.click(".card:nth-child(4) a.open")):
            page.click(opener)
            page.wait(is_open)
            dismiss()
            page.wait(f"!({is_open})")
            assert not page.js("Boolean(document.querySelector('dialog'))"), "the click opened no video"
        page.click(".card:nth-child(4) a.open")
        page.wait("document.querySelector('dialog')")


def test_a_key_on_save_this_search_closes_the_list_menu(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=boat")
    page.wait(SETTLED)
    page.click(".menu summary")
    page.wait("document.querySelector('.menu').open")
    page.js("document.querySelector('.saving button').focus()")
    page.key("Enter")
    page.wait("document.querySelector('.saving input') && !document.querySelector('.menu').open")


def test_a_dead_link_offers_the_library_and_no_second_try(page: Page, full: Any) -> None:
    page.open(full.address + f"/?video={LOST}")
    page.wait("document.querySelector('dialog .notice')")
    actions = page.js("[...document.querySelectorAll('dialog .notice .actions *')].map(a => a.textContent)")
    assert actions == ["Open Library"]
