"""Text that would be a script, and a script that would call home: in a real browser, neither is."""

from __future__ import annotations

import csv
import http.server
import io
import threading

import numpy as np
import pytest

from hopefold import SHOPE
from hopefold.data.columns import Columns
from hopefold.data.tables import Table
from hopefold.report.render import write_report
from hopefold.report.scene import make_scene

#: Each sets a mark on the window, or sends a request, if it is ever taken for more than text.
SCRIPT = "window.hurt=(window.hurt||0)+1"
HOSTILE = (
    f"<script>{SCRIPT}</script>",
    f"</script><script>{SCRIPT}</script>",
    f"\"><img src=x onerror='{SCRIPT}'>",
    f"<svg/onload={SCRIPT}>",
    f"' onfocus='{SCRIPT}' autofocus='",
    f"javascript:{SCRIPT}",
    f"${{{SCRIPT}}}{{{{{SCRIPT}}}}}",
    f"--><iframe srcdoc='<script>top.{SCRIPT}</script>'>",
    "</title></style><base href=//a.b/><meta http-equiv=refresh content=0;url=//a.b>",
    f"=HYPERLINK('{SCRIPT}')\u2028\0\u202e",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A report with hostile classes, features, encoded values, ids, commands and a title."""
    random = np.random.RandomState(0)
    n = len(HOSTILE)
    codes = np.arange(20 * n) % n
    X = 5 * random.normal(size=(n, n))[codes] + random.normal(size=(20 * n, n))
    names = np.array([f"{text} {place}" for place, text in enumerate(HOSTILE)], dtype=object)
    columns = Columns(tuple(names), label=HOSTILE[0])
    table = Table(X, np.array(HOSTILE)[codes], names, columns=columns)
    model = SHOPE(max_epochs=20, n_factors=30, n_units=30, random_state=0).fit(table)
    scene = make_scene(
        model,
        X,
        table.y,
        ids=[f"{HOSTILE[row % n]} {row}" for row in range(len(X))],
        names=names.tolist(),
        commands=HOSTILE[:2],
        title=HOSTILE[1],
    )
    path = tmp_path_factory.mktemp("report") / "hostile.html"
    write_report(scene, path)
    return path


@pytest.fixture(scope="module")
def page(visit, hostile):
    """The report, with every part of it looked at."""
    seen = visit(hostile)
    for trace in range(3):
        seen.hover(trace=trace, point=1)
    for selector in ("[data-exemplar]", ".matrix button", "#legend [data-code='2']"):
        seen.page.locator(selector).first.click()
    seen.page.locator("#chosen tbody button").first.click()
    seen.page.fill("#wanted", HOSTILE[2][:6])
    seen.page.locator("#found button").first.click()
    seen.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    return seen


def test_hostile_text_is_never_run(page):
    assert page.page.evaluate("() => window.hurt") is None
    assert not page.wrong


def test_hostile_text_is_shown_as_it_is(page):
    assert page.page.locator("h1").inner_text() == HOSTILE[1]
    legend = page.page.locator("#legend").inner_text()
    for text in HOSTILE[:4]:
        assert text in legend


def test_hostile_text_makes_no_element_of_its_own(page):
    count = page.page.locator("iframe, base, object, embed, form[action], a[href^='javascript:' i]")
    assert count.count() == 0
    handlers = """() => Array.from(document.querySelectorAll("*")).flatMap(one =>
        Array.from(one.attributes)).filter(one => one.name.startsWith("on")).length"""
    assert page.page.evaluate(handlers) == 0
    assert page.page.locator("script:not([type='application/json'])").count() == 2


def test_rows_that_are_downloaded_are_text_in_a_spreadsheet(page):
    page.page.locator(f"#legend [data-code='{sorted(HOSTILE).index(HOSTILE[-1])}']").click()
    with page.page.expect_download() as download:
        page.page.click("#download")
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_bytes().decode())))
    assert rows
    for row in rows:
        assert row["true"] == f"'{HOSTILE[-1]}"
        assert row["id"].startswith("'=HYPERLINK")
        float(row["x"])


@pytest.fixture
def listener():
    """A server, and the paths that somebody has asked it for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


#: All ways out of a page that its policy can close.
WAYS_OUT = """async where => {
    const at = `http://${where}/`;
    const put = (name, attributes) =>
        document.body.append(Object.assign(document.createElement(name), attributes));
    const attempts = [
        () => fetch(`${at}fetch`, { mode: "no-cors" }),
        () => navigator.sendBeacon(`${at}beacon`, "x"),
        () => new WebSocket(`ws://${where}/socket`),
        () => new EventSource(`${at}events`),
        () => { const ask = new XMLHttpRequest(); ask.open("GET", `${at}xhr`); ask.send(); },
        () => put("img", { src: `${at}img` }),
        () => put("script", { src: `${at}script` }),
        () => put("link", { rel: "stylesheet", href: `${at}style` }),
        () => put("style", { textContent: `@import "${at}import"` }),
        () => put("style", { textContent: `body { background: url(${at}css) }` }),
        () => put("iframe", { src: `${at}frame` }),
        () => put("object", { data: `${at}object` }),
        () => put("video", { src: `${at}video` }),
        () => new FontFace("x", `url(${at}font)`).load(),
        () => new Worker(URL.createObjectURL(new Blob([`fetch("${at}worker")`]))),
        () => import(`${at}module`),
        () => {
            put("iframe", { name: "nowhere" });
            put("form", { action: `${at}form`, target: "nowhere" });
            document.querySelector("form[action]").submit();
        },
        () => put("script", { textContent: "window.inline = true" }),
        () => document.body.setAttribute("onclick", "window.handler = true"),
        () => document.body.click(),
    ];
    for (const attempt of attempts) {
        try { await attempt(); } catch (error) { /* refused, as it should be */ }
    }
    await new Promise(resolve => setTimeout(resolve, 1500));
    return [window.inline, window.handler];
}"""


def test_no_way_leads_out_of_the_page(visit, hostile, listener):
    """Even a script that had got in could ask no server for anything, nor write further scripts."""
    where, asked = listener
    page = visit(hostile).page
    assert page.evaluate(WAYS_OUT, where) == [None, None]
    assert asked == []


def test_the_ways_out_are_ways_out(chromium, listener, tmp_path):
    """Without the policy they lead to the server: the test above could fail."""
    where, asked = listener
    (tmp_path / "open.html").write_text("<body></body>")
    page = chromium.new_page()
    page.goto((tmp_path / "open.html").as_uri())
    assert page.evaluate(WAYS_OUT, where) == [True, True]
    ways = [
        "fetch",
        "beacon",
        "xhr",
        "img",
        "script",
        "style",
        "frame",
        "video",
        "font",
        "module",
        "form",
    ]
    assert {f"/{way}" for way in ways} <= {path.rstrip("?") for path in asked}
