"""The page against canned answers: its states, its keys, its shapes and its accessibility."""

from __future__ import annotations

import time

import pytest
from tests.serve import fake_server
from tests.serve.browser import axe
from tests.serve.browser.cdp import Browser, Page
from tests.serve.browser.screens import ready, views
from tests.serve.conftest import wait

VIEWS = views(f"{0:064x}")
CARDS = "document.querySelectorAll('.results .card a.open').length"


def base(server: object) -> str:
    address: str = server.address  # type: ignore[attr-defined]
    return address


def ask(page: Page, words: str) -> None:
    page.click("#query")
    page.type(words)


def test_typing_answers_and_the_address_keeps_it(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/")
    page.wait("document.activeElement.id === 'query'")
    page.type("red")
    page.wait("location.search === '?q=red'")
    page.type(" boat")
    page.wait("location.search === '?q=red+boat'")
    page.wait(f"{CARDS} === 24")
    page.wait("document.querySelector('.badge') && !document.querySelector('.results[aria-busy]')")
    assert full.fake.asked[-1]["text"] == "red boat"  # type: ignore[attr-defined]
    page.js("history.back()")
    page.wait("location.search === ''")
    page.wait("document.querySelector('#query').value === ''")
    page.js("history.forward()")
    page.wait("location.search === '?q=red+boat' && document.querySelector('.badge')")
    assert page.quiet() == []


def test_every_request_goes_to_the_server_itself(browser: Browser, full: object) -> None:
    page = browser.page()
    for name, address in VIEWS.items():
        page.open(base(full) + address)
        page.wait(ready(name))
    page.quiet()
    assert page.requests
    assert all(url.startswith((base(full), "data:", "blob:", "about:")) for url in page.requests)


def test_arrows_move_and_enter_opens_at_the_second(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?q=boat")
    page.wait(f"{CARDS} === 24")
    page.js("document.activeElement.blur()")
    page.key("/")
    page.wait("document.activeElement.id === 'query'")
    page.key("ArrowDown")
    page.key("ArrowRight")
    page.key("ArrowDown")
    across = page.js(
        "getComputedStyle(document.querySelector('.grid')).gridTemplateColumns.split(' ').length"
    )
    at = "[...document.querySelectorAll('a.open')].indexOf(document.activeElement)"
    assert page.js(at) == 1 + across
    page.key("ArrowLeft")
    page.key("ArrowUp")
    assert page.js(at) == 0
    page.key("Enter")
    page.wait("document.querySelector('dialog.player video')?.currentTime >= 2")
    page.js("document.querySelector('dialog video').pause()")
    page.js("document.querySelector('dialog h2').focus(), document.activeElement.blur()")
    before = page.js("document.querySelector('dialog video').currentTime")
    page.key("l")
    page.wait(f"Math.abs(document.querySelector('dialog video').currentTime - {before} - 5) < 0.6")
    page.key("j")
    page.wait(f"Math.abs(document.querySelector('dialog video').currentTime - {before}) < 0.6")
    page.key("Escape")
    page.wait("!document.querySelector('dialog') && location.search === '?q=boat'")
    assert page.js(at) == 0, "the focus goes back to the card"


def test_a_card_plays_while_it_is_hovered(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?q=boat")
    page.hover(".card a.open")
    page.wait("document.querySelector('.thumb.live video.moving')?.currentTime >= 2")
    page.hover("h1, .brand")
    page.wait("!document.querySelector('.moving')")


def test_nothing_moves_by_itself_where_that_is_not_wanted(browser: Browser, full: object) -> None:
    page = browser.page()
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    page.open(base(full) + "/?q=boat")
    page.hover(".card a.open")
    time.sleep(0.6)
    assert not page.js("Boolean(document.querySelector('.moving'))")


def test_the_heat_strip_and_the_transcript_seek(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + VIEWS["player"])
    page.wait("document.querySelector('.strip') && document.querySelector('dialog video').readyState > 1")
    page.js("document.querySelector('dialog video').pause()")
    page.click(".strip")
    page.js("document.querySelector('dialog video').pause()")
    page.wait("Math.abs(document.querySelector('dialog video').currentTime - 10) < 1.5")
    page.click(".lines li:nth-child(2) button")
    page.wait("document.querySelector('.lines li:nth-child(2)').getAttribute('aria-current') === 'true'")
    assert page.js("[...document.querySelectorAll('.lines mark')].map(m => m.textContent)")[:2] == [
        "red",
        "boat",
    ]
    page.js("document.querySelector('.strip').focus()")
    page.key("ArrowRight")
    page.wait("Number(document.querySelector('.strip').getAttribute('aria-valuenow')) > 5.5")


def test_filters_go_into_the_request_and_come_off_as_chips(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?q=boat&kind=video&has_speech=true&min_duration=5&min_confidence=0.25")
    page.wait(f"{CARDS} === 24")
    asked = full.fake.asked[-1]  # type: ignore[attr-defined]
    assert (asked["has_speech"], asked["min_duration"], asked["min_confidence"]) == (True, 5, 0.25)
    assert asked["kind"] == "video"
    page.wait("document.querySelectorAll('.chip').length === 4")
    page.click(".chip")
    page.wait("document.querySelectorAll('.chip').length === 3 && !location.search.includes('kind')")
    page.click(".tool[aria-controls=filters]")
    page.wait("document.querySelector('#filter-folder')")
    assert page.js("document.querySelector('#filter-has_speech').value") == "true"
    folders = page.js("[...document.querySelectorAll('#folders option')].map(o => o.value)")
    assert folders == ["/home/me/Videos/2024", "/home/me/Videos"]


def test_every_filter_of_the_panel_reaches_the_request(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?q=boat")
    page.wait(f"{CARDS} === 24")
    page.click(".tool[aria-controls=filters]")
    wanted = {
        "kind": "image",
        "folder": "/home/me/Videos",
        "after": "2024-01-02",
        "before": "2025-01-02",
        "min_duration": "3",
        "max_duration": "90",
        "has_speech": "false",
        "has_text": "true",
        "expert": "sound",
        "min_confidence": "0.5",
        "norm": "dis",
        "tags": "sea,sand",
        "people": "Ada",
    }
    for name, value in wanted.items():
        box = f"document.querySelector('#filter-{name}')"
        page.wait(box)
        page.js(f"{box}.value = '{value}', {box}.dispatchEvent(new Event('change')), true")
        page.wait(f"new URLSearchParams(location.search).get('{name}') === '{value}'")
    page.wait(f"document.querySelectorAll('.chip').length === {len(wanted)}")
    assert page.js("document.querySelectorAll('#filters .field').length") == len(wanted)
    page.wait("!document.querySelector('.results[aria-busy]')")
    typed = {
        "tags": ["sea", "sand"],
        "people": ["Ada"],
        "min_duration": 3,
        "max_duration": 90,
        "has_speech": False,
        "has_text": True,
    }
    expected: dict[str, object] = {**wanted, **typed, "min_confidence": 0.5}
    asked = full.fake.asked[-1]  # type: ignore[attr-defined]
    assert {name: asked[name] for name in expected} == expected


def test_a_model_is_downloaded_only_after_a_yes(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?view=settings")
    page.wait("document.querySelectorAll('.models .table li').length === 3")
    words = str(page.js("document.querySelector('.models').textContent"))
    assert "in use" in words
    assert "605 MB to download, fast, licence: MIT" in words
    before = len(full.fake.asked)  # type: ignore[attr-defined]
    page.click(".models summary")
    page.click("[aria-label='Use clip']")
    page.wait("document.querySelector('dialog').textContent.includes('605 MB')")
    page.click("dialog button:not(.danger)")
    page.wait("!document.querySelector('dialog')")
    assert len(full.fake.asked) == before  # type: ignore[attr-defined]
    page.click("[aria-label='Use clip']")
    page.wait("document.querySelector('dialog .danger')")
    page.click("dialog .danger")
    page.wait("document.querySelector('.models').textContent.includes('100 jobs are waiting')")
    assert full.fake.asked[-1] == {"model": "clip", "download": True}  # type: ignore[attr-defined]
    page.click("[aria-label='Use mine']")
    wait(lambda: full.fake.asked[-1]["model"] == "mine")  # type: ignore[attr-defined]


def test_long_shots_stand_apart(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?q=boat")
    page.wait("document.querySelector('.divide')")
    sure = page.js(
        "[...document.querySelectorAll('.grid > *')].map(c => c.matches('.divide') ? -1 : parseInt("
        "c.querySelector('.sure').textContent))"
    )
    at = sure.index(-1)
    assert min(sure[:at]) >= 5 > max(sure[at + 1 :])


def test_pairs_that_are_all_long_shots_stand_below_the_line(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?q=blorp&then=boat")
    page.wait("document.querySelector('.grid > .divide:first-child')")
    assert "does not know “blorp”" in page.js("document.querySelector('.results [role=note]').innerText")
    page.open(base(full) + "/?q=blorp")
    page.wait(
        "document.querySelectorAll('.grid > .card').length && document.querySelector('.divide') === null"
    )


def test_why_draws_shares_and_weights(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + "/?q=boat")
    page.click(".card button[aria-expanded]")
    page.wait("document.querySelectorAll('.why .bars li').length === 7")
    assert "RED BOAT" in page.js("document.querySelector('.why').innerText")
    assert "words on screen" in page.js("document.querySelector('.why').innerText")


def test_side_by_side_marks_what_moved(browser: Browser, full: object) -> None:
    page = browser.page()
    page.open(base(full) + VIEWS["compare"])
    page.wait("document.querySelectorAll('.ranks').length === 2")
    marks = page.js("[...document.querySelectorAll('.ranks:last-of-type')].at(-1).innerText")
    assert "comes in" in marks
    assert "stays" in marks
    assert "▲ 2" in marks


@pytest.mark.parametrize(
    ("mood", "address", "words"),
    [
        ("empty", "/", "Add your first videos"),
        ("empty", "/?view=library", "drop files"),
        ("shown", "/", "Its owner can add videos"),
        ("stale", "/", "owner of the library"),
        ("stale", "/?view=library", "owner of the library can prepare them"),
        ("stale", "/?q=boat", "not yet prepared"),
        ("broken", "/?q=boat", "try again in a minute"),
        ("full", "/?q=nothing", "other words"),
        ("full", "/?q=nothing&has_speech=true", "without filters"),
    ],
)
def test_empty_and_broken_states_tell_the_next_step(
    browser: Browser, mood: str, address: str, words: str
) -> None:
    server = fake_server.start(mood)
    page = browser.page()
    page.open(base(server) + address)
    page.wait(f"document.querySelector('main').innerText.includes({words!r})")
    server.shutdown()


def test_a_server_that_went_away_is_said_and_tried_again(browser: Browser) -> None:
    server = fake_server.start("full")
    port = server.server_address[1]
    page = browser.page()
    page.open(base(server) + "/?q=boat")
    page.wait(f"{CARDS} === 24")
    server.shutdown()
    server.server_close()
    page.send(
        "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
    )
    ask(page, " sails")
    page.wait("document.querySelector('[role=alert]')?.innerText.includes('start it again')")
    page.send(
        "Network.emulateNetworkConditions",
        offline=False,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )
    again = fake_server.start("full", port)
    page.click("[role=alert] button")
    page.wait(f"{CARDS} === 24")
    again.shutdown()


def test_views_fit_a_phone(browser: Browser, full: object) -> None:
    page = browser.page(320, 640, phone=True)
    for view, address in VIEWS.items():
        page.open(base(full) + address)
        page.wait(ready(view))
        assert page.js("document.documentElement.scrollWidth <= innerWidth"), f"{view} sticks out sideways"
    assert page.quiet() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [(1360, 900), (390, 844)], ids=["desktop", "phone"])
def test_views_pass_the_audit(browser: Browser, full: object, size: tuple[int, int], dark: bool) -> None:
    source = axe.script()
    page = browser.page(*size, dark=dark, phone=size[0] < 400)
    for view, address in VIEWS.items():
        page.open(base(full) + address)
        page.wait(ready(view))
        found = axe.findings(page, source)
        assert [line for line in found if line.startswith(("serious", "critical"))] == [], view
