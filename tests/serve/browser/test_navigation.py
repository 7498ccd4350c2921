"""Back, Escape, arrows and addresses: where one is, and how one gets back."""

from __future__ import annotations

from typing import Any

from tests.serve.browser.cdp import Page

CARDS = "document.querySelectorAll('.results .badge').length === 24"
SETTLED = f"{CARDS} && !document.querySelector('.results[aria-busy]')"
BOX = "document.querySelector('#query')"


def type_over(page: Page, words: str) -> None:
    """Types `words` in the place of what the box holds."""
    page.js(f"{BOX}.focus(), {BOX}.select()")
    page.type(words)
    page.wait(f"new URLSearchParams(location.search).get('q') === '{words}' && {SETTLED}")


def back_to(page: Page, words: str) -> None:
    page.js("history.back()")
    page.wait(f"new URLSearchParams(location.search).get('q') === '{words}' && {BOX}.value === '{words}'")


def test_back_returns_to_the_words_before(page: Page, full: Any) -> None:
    page.open(full.address + "/")
    page.wait("document.activeElement.id === 'query'")
    type_over(page, "dog")
    type_over(page, "cat")
    back_to(page, "dog")
    page.js("history.back()")
    page.wait(f"location.search === '' && {BOX}.value === ''")


def test_letters_taken_back_one_by_one_leave_one_step(page: Page, full: Any) -> None:
    page.open(full.address + "/")
    page.wait("document.activeElement.id === 'query'")
    type_over(page, "dog")
    before = page.js("history.length")
    for words in ("do", "d", "", "c", "cat"):
        page.js(f"{BOX}.value = '{words}', {BOX}.dispatchEvent(new Event('input')), true")
        page.wait(f"(new URLSearchParams(location.search).get('q') ?? '') === '{words}'")
        page.wait("!document.querySelector('.results[aria-busy]')")
    assert page.js("history.length") == before + 1
    back_to(page, "dog")


def test_escape_in_the_player_leaves_no_step(page: Page, full: Any) -> None:
    page.open(full.address + "/")
    page.wait("document.activeElement.id === 'query'")
    type_over(page, "boat")
    steps = page.js("history.length")
    page.click(".results a.open")
    page.wait("document.querySelector('dialog.player[open]')")
    page.key("Escape")
    page.wait("!document.querySelector('dialog') && location.search === '?q=boat'")
    assert page.js("history.length") <= steps + 1, "the player itself was a step, leaving it is none"
    page.js("history.back()")
    page.wait("location.search === ''")


def test_a_player_that_was_linked_to_closes_to_its_results(page: Page, full: Any) -> None:
    page.open(full.address + f"/?q=boat&video={0:064x}&t=2.0")
    page.wait("document.querySelector('dialog.player[open]')")
    steps = page.js("history.length")
    page.key("Escape")
    page.wait(f"!document.querySelector('dialog') && location.search === '?q=boat' && {CARDS}")
    assert page.js("history.length") == steps


def test_an_arrow_right_after_typing_is_not_lost(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=boat")
    page.wait(SETTLED)
    page.js(f"{BOX}.focus(), {BOX}.select()")
    page.type("sails")
    page.key("ArrowDown")
    page.wait(f"location.search === '?q=sails' && {SETTLED}")
    first = "document.activeElement === document.querySelector('.results a.open')"
    page.wait(first)
    page.key("ArrowRight")
    assert page.js("[...document.querySelectorAll('.results a.open')].indexOf(document.activeElement)") == 1


def test_the_focus_stays_at_its_card_when_results_come_anew(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=boat&kind=video")
    page.wait(SETTLED)
    page.js("document.querySelectorAll('.results a.open')[3].focus()")
    page.js("document.querySelector('.chosen .chip').dispatchEvent(new Event('click'))")
    page.wait(f"location.search === '?q=boat' && {SETTLED}")
    at = page.js("[...document.querySelectorAll('.results a.open')].indexOf(document.activeElement)")
    assert at == 3


def test_unknown_addresses_show_a_page(page: Page, full: Any) -> None:
    for address in ("/films/2024", "/?view=nowhere"):
        page.open(full.address + address)
        page.wait("document.querySelector('main').innerText.includes('nothing at this address')")
    page.click("main a.primary")
    page.wait("location.pathname === '/' && document.activeElement.id === 'query'")
