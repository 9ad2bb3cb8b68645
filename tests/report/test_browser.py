"""The report in a real browser: charts are drawn, the slider moves the pictures, nothing is asked of the network."""

import csv
import io
import json
import shutil
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from droptop.escapes import csv_cell
from droptop.report.page.render import describe, render, write_report
from droptop.report.page.serve import Pages, server

from hostile import PIECES
from hostile_page import SIZE, page_of
from pictures import EVIL

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="there is no chromium with its chromedriver")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def wait_for(browser, script, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := browser.execute_script(f"return {script}")):
        assert time.monotonic() < deadline, script
        time.sleep(0.05)
    return found


def open_at(browser, path, width, scheme):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get_log("performance")  # what came before
    browser.get(path.as_uri())
    wait_for(browser, "document.documentElement.dataset.drawn")


@pytest.mark.parametrize(
    ("kind", "width", "scheme"), [("comparison", 1280, "light"), ("stopped", 390, "dark"), ("study", 390, "light")]
)
def test_a_page_of_each_kind(kind, width, scheme, browser, request, tmp_path):
    folder = request.getfixturevalue(kind)
    path, page = write_report(folder, tmp_path / "report.html", "again"), describe(folder, "again")
    open_at(browser, path, width, scheme)
    charts = sum(len(section.charts) for section in (page.answer, *page.sections) if section is not None)
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('.chart svg')].map(svg => svg.querySelectorAll('path, text').length)"
    )
    assert len(drawn) == charts
    assert min(drawn) > 5
    inside = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert inside[0] <= inside[1]
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.execute_script("return document.querySelector('h1').textContent") == page.headline
    assert browser.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    places = {
        event["params"]["request"]["url"].partition(":")[0]
        for event in asked
        if event["method"] == "Network.requestWillBeSent"
    }
    assert places <= {"file", "data", "blob"}
    if kind == "stopped":
        assert "taken over" not in browser.title
        assert browser.execute_script("return document.querySelector('figcaption').textContent") == EVIL
        assert browser.execute_script("return document.images.length") == 0


@pytest.fixture(scope="module")
def opened(browser, comparison, tmp_path_factory):
    """The page of the comparison, open."""
    open_at(browser, write_report(comparison, tmp_path_factory.mktemp("page") / "report.html", "again"), 1280, "dark")
    wait_for(browser, "document.documentElement.dataset.looking")
    return browser


def pictures(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('#cards canvas[data-arm]')].map(canvas => "
        "[canvas.dataset.moment, canvas.toDataURL()])"
    )


def test_the_slider_moves_the_pictures(opened):
    from selenium.webdriver.common.keys import Keys

    browser = opened
    end = pictures(browser)
    assert len(end) == 16
    assert {moment for moment, _ in end} == {"3"}
    assert len({picture for _, picture in end}) == 16
    slider = browser.find_element("id", "moment")
    assert slider.accessible_name == "Moment of training"
    slider.send_keys(Keys.HOME)
    start = pictures(browser)
    assert {moment for moment, _ in start} == {"0"}
    assert all(before != after for (_, before), (_, after) in zip(start, end))
    assert slider.get_attribute("aria-valuetext") == "task 1, step 1"
    label = "return document.querySelectorAll('#cards canvas[data-arm]')[1].getAttribute('aria-label')"
    assert "attention of droptop at task 1, step 1" in browser.execute_script(label)
    slider.send_keys(Keys.ARROW_RIGHT)
    assert {moment for moment, _ in pictures(browser)} == {"1"}
    browser.find_element("id", "play").send_keys(Keys.SPACE)
    wait_for(browser, "document.querySelector('#cards canvas[data-arm]').dataset.moment == '3'", 10)
    assert pictures(browser) == end
    assert browser.get_log("browser") == []


def test_the_numbers_can_be_downloaded(opened, comparison, tmp_path):
    browser = opened
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page = describe(comparison, "again")
    section = page.sections[0]
    browser.find_element("css selector", f".csv[data-section={section.name}]").click()
    file, deadline = Path(tmp_path / f"{section.name}.csv"), time.monotonic() + 20
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    rows = list(csv.reader(io.StringIO(file.read_text())))
    assert rows[0] == section.columns
    assert [[*row[:2], *map(float, row[2:])] for row in rows[1:]] == section.rows
    links = browser.execute_script("return [...document.querySelectorAll('.csv')].map(link => link.href)")
    assert len(links) == len(page.sections) + 1
    assert all(link.startswith("blob:") for link in links)


# -- Names that are scripts -------------------------------------------------------------------------------------------

MARKS = ("</script><script>window.marked=1</script>", '"><svg onload=window.marked=1>', "javascript:window.marked=1")


def test_a_script_in_every_name_does_not_run(browser, tmp_path):
    many = [f"{MARKS[place % 3]}{PIECES[2 * place]}"[:80] for place in range(SIZE)]
    many[:6] = ["=1+1", "-1+1", "@x", "\t=1", "-1", 'a,b\n"c"']
    path = tmp_path / "report.html"
    path.write_text(render(page_of(many)), "utf-8")
    open_at(browser, path, 1280, "light")
    wait_for(browser, "document.documentElement.dataset.looking")
    assert len(browser.execute_script("return [...document.querySelectorAll('.chart svg')]")) == 2
    for canvas in browser.find_elements("css selector", "#cards canvas")[:3]:
        canvas.click()
    assert browser.execute_script("return window.marked ?? null") is None
    assert browser.execute_script("return document.querySelectorAll('script').length") == 4
    assert browser.get_log("browser") == []  # nor was anything of our own kept from running
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.find_element("class name", "csv").click()
    file, deadline = tmp_path / "accuracy.csv", time.monotonic() + 20
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    rows = list(csv.reader(io.StringIO(file.read_text("utf-8"), newline="")))
    assert [[*cells[:2]] for cells in rows[1:]] == [[csv_cell(name)] * 2 for name in many]
    assert {cells[2] for cells in rows[1:]} == {"-1"}


def test_what_the_policy_is_for(browser, tmp_path):
    """Were a name to become an element, or text to be run: neither does anything."""
    path = tmp_path / "report.html"
    path.write_text(render(page_of([f"name {place}" for place in range(SIZE)])), "utf-8")
    open_at(browser, path, 1280, "light")
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.marked=1>');"
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.marked = 2' }));"
        "document.body.insertAdjacentHTML('beforeend', '<base href=https://x.y><iframe src=https://x.y></iframe>');"
    )
    broken = "document.body.append(Object.assign(new Image(), { src: 'https://x.y/z.png' }))"
    browser.execute_script(broken)
    time.sleep(0.5)
    assert browser.execute_script("return window.marked ?? null") is None
    told = " ".join(entry["message"] for entry in browser.get_log("browser"))
    for rule in ("script-src", "img-src", "default-src", "base-uri"):
        assert rule in told, told


def test_a_page_that_is_served_asks_for_newer_ones(browser, comparison):
    pages = Pages(comparison, lambda version: render(describe(comparison, "again"), version))
    with server(pages, 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        browser.get_log("browser")
        browser.get(serving.address)
        wait_for(browser, "document.documentElement.dataset.drawn")
        newest = "const done = arguments[0]; fetch('version').then((answer) => answer.text()).then(done, done)"
        assert browser.execute_async_script(newest) == pages.current()
        assert browser.get_log("browser") == []
        serving.shutdown()
