#!/usr/bin/env python3
"""Opens the reports of a real run in headless Chromium, at desktop and phone width, and holds them against the JSON.

    python3 tests/browser/report.py --binary target/debug/poul --out target/browser

Pictures of every page are left in the output folder. Exit codes: 0 all holds, 1 something does not, 77 there is no
browser and none can be installed here.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import webdriver

WIDTHS = {"desktop": 1280, "phone": 390}
MOST_BYTES = 6_000_000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the poul binary, built")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the pictures")
    parser.add_argument("--pages", type=pathlib.Path, help="folder with made-up pages to open too: full, learners")
    arguments = parser.parse_args()
    try:
        browser, driver = webdriver.find_browser()
    except webdriver.CannotInstall as error:
        print(f"there is no browser:\n{error}")
        return 77
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pages = real_pages(arguments.binary.resolve(), pathlib.Path(folder))
        if arguments.pages:
            pages += [(name, arguments.pages / f"{name}.html", arguments.pages / f"{name}.json") for name in ("full", "learners")]
        with webdriver.Browser(browser, driver) as page:
            wrong = [line for name, html, metrics in pages for line in check(page, name, html, metrics, arguments.out)]
    print("\n".join(wrong) or f"{len(pages)} reports hold; pictures are in {arguments.out}")
    return 1 if wrong else 0


def real_pages(binary, folder):
    """An experiment, a model, and both kinds of report."""
    def poul(*words):
        done = subprocess.run([str(binary), *words, "--quiet"], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"poul {' '.join(words)}\n{done.stderr}")

    (folder / "poul.toml").write_text(
        '[data]\npolicies = "rides/policies.toml"\noutcome = ["gmv", "cost"]\ntime = "month"\n'
        "[training]\nepochs = 4\n")
    poul("simulate", "--out", "rides", "--rows", "3000", "--test-rows", "6000", "--features", "24")
    poul("fit", "rides/train.parquet", "--config", "poul.toml", "--out", "model.poul")
    poul("evaluate", "model.poul", "rides/test.parquet", "--cost-curve", "gmv,cost", "--json", "metrics.json",
         "--report", "report.html", "--draws", "100")
    poul("compare", "rides/train.parquet", "--test", "rides/test.parquet", "--config", "poul.toml",
         "--learner", "ridge,constant,random", "--reference", "ridge", "--draws", "50", "--json", "comparison.json",
         "--report", "comparison.html")
    return [("evaluation", folder / "report.html", folder / "metrics.json"),
            ("comparison", folder / "comparison.html", folder / "comparison.json")]


def check(page, name, html, metrics, out):
    """What does not hold of one page."""
    wrong = []

    def hold(truth, what):
        if not truth:
            wrong.append(f"{name}: {what}")

    expected = json.loads(metrics.read_text())
    hold(html.stat().st_size < MOST_BYTES, f"the page has {html.stat().st_size} bytes")
    page.log("browser"), page.log("performance")
    for screen, width in WIDTHS.items():
        for scheme in ("light", "dark"):
            page.tools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            page.screen(width)
            page.open(html)
            page.wait("return document.documentElement.dataset.drawn")
            page.picture(out / f"{name}-{screen}-{scheme}.png")
        where = f"at {width} px"
        overflow = page.run("return document.documentElement.scrollWidth - window.innerWidth")
        hold(overflow <= 0, f"{where} the page is {overflow} px too wide")
        for figure, marks in page.run(MARKS):
            hold(marks > 0, f"{where} chart `{figure}` has no marks")
        for figure, cut in page.run(CUT_OFF):
            hold(not cut, f"{where} chart `{figure}`: cut off: {cut}")
    for figure, text in hover_every_chart(page):
        hold(text.strip(), f"hovering over chart `{figure}` shows nothing")
    for figure, label, caption, focus in page.run(WORDS):
        hold(any(digit in label for digit in "0123456789"), f"chart `{figure}` has no numbers in words: {label}")
        hold(caption, f"chart `{figure}` has no caption")
        hold(focus, f"chart `{figure}` cannot be reached by keyboard")
    for figure, spoken in keyboard(page):
        hold(spoken.strip(), f"chart `{figure}`: the arrow keys say nothing")
    for figure, rows in page.run(VALUES):
        hold(rows > 0, f"chart `{figure}` has no table of values")
    wrong.extend(f"{name}: {line}" for line in compare(page, expected))
    wrong.extend(f"{name}: {line}" for line in print_page(page, out / f"{name}-print.pdf"))

    errors = [entry["message"] for entry in page.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    hold(not errors, f"the console says {errors}")
    requests = [json.loads(entry["message"])["message"] for entry in page.log("performance")]
    asked = {entry["params"]["request"]["url"] for entry in requests if entry["method"] == "Network.requestWillBeSent"}
    # `chrome:` is the browser's own first tab, which no page may ask for.
    own = (html.resolve().as_uri(), "data:", "blob:", "chrome:", "chrome-untrusted:")
    left = [url for url in asked if not url.startswith(own)]
    hold(not left, f"requests leave the page: {left}")
    return wrong


# Points, lines, bars and cells that were drawn, by chart.
MARKS = """return [...document.querySelectorAll('.chart')].map((chart) => [chart.id,
  chart.querySelectorAll('.scatterlayer path, .barlayer path, .heatmaplayer image, .hm image').length])"""

# Labels of axes and legends that leave the drawing, by chart.
CUT_OFF = """return [...document.querySelectorAll('.chart')].map((chart) => {
  const box = chart.getBoundingClientRect();
  const texts = [...chart.querySelectorAll('.xtick text, .ytick text, .xtitle, .ytitle, .legendtext')];
  const out = texts.filter((text) => {
    const own = text.getBoundingClientRect();
    return own.width > 0 && (own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 1
      || own.top < box.top - 1);
  });
  return [chart.id, out.map((text) => text.textContent).join('; ')];
})"""

WORDS = """return [...document.querySelectorAll('.chart')].map((chart) => [chart.id, chart.getAttribute('aria-label'),
  chart.closest('figure').querySelector('figcaption').textContent, chart.tabIndex === 0 && chart.role === 'img'])"""

VALUES = """return [...document.querySelectorAll('.chart')].map((chart) => {
  const details = chart.closest('figure').querySelector('details');
  details.open = true;
  details.dispatchEvent(new Event('toggle'));
  const rows = details.querySelectorAll('tbody tr').length;
  details.open = false;
  return [chart.id, rows];
})"""

# Where a point of the first trace that can be pointed at is on the screen.
POINT = """const chart = document.getElementById(arguments[0]);
chart.scrollIntoView({ block: 'center' });
const box = chart.getBoundingClientRect();
const trace = chart.data.find((own) => own.hoverinfo !== 'skip' && (own.type === 'heatmap' || own.x.length > 0));
const layout = chart._fullLayout;
const place = trace.type === 'heatmap' ? 0 : Math.floor(trace.x.length / 2);
let x = trace.x[place];
if (trace.type === 'bar') x = x / 2;
return [box.left + layout._size.l + layout.xaxis.d2p(x), box.top + layout._size.t + layout.yaxis.d2p(trace.y[place])];"""

HOVERED = """return [...document.getElementById(arguments[0]).querySelectorAll('.hoverlayer text')]
  .map((text) => text.textContent).join(' ')"""


def charts(page):
    return page.run("return [...document.querySelectorAll('.chart')].map((chart) => chart.id)")


def hover_every_chart(page):
    """Moves a real pointer over each chart."""
    found = []
    for chart in charts(page):
        x, y = page.run(POINT, chart)
        for dx in (-4, 0):
            page.tools("Input.dispatchMouseEvent", type="mouseMoved", x=x + dx, y=y)
        try:
            page.wait("return document.querySelector('.hoverlayer .hovertext') !== null", seconds=3)
        except webdriver.WebDriverError:
            pass
        found.append((chart, page.run(HOVERED, chart)))
        page.tools("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    return found


def keyboard(page):
    """Focuses each chart and presses an arrow key; a heat map has its table instead."""
    found = []
    for chart in charts(page):
        if page.run("return document.getElementById(arguments[0]).data[0].type === 'heatmap'", chart):
            continue
        page.run("document.getElementById(arguments[0]).focus()", chart)
        for kind in ("keyDown", "keyUp"):
            page.tools("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
        found.append((chart, page.run(
            "return document.getElementById(arguments[0]).closest('figure').querySelector('.spoken').textContent", chart)))
    return found


def compare(page, expected):
    """Numbers that are drawn and are not those of the JSON, for every choice of outcome and policy."""
    if "learners" in expected:
        yield from compare_learners(page, expected)
        return
    pooled = [dict(own, policy="all policies") for own in expected["pooled"] if len(own["policies"]) > 1]
    n_compared = 0
    for result in expected["results"] + pooled:
        if not result["curve"]:
            continue
        for key in ("outcome", "policy"):
            select(page, "curves", key, result[key])
        drawn = page.run("return document.getElementById('curves-chart').data[2]")
        shares = dict(zip(drawn["x"], drawn["y"]))
        gains = {point["share"]: point["gain"] for point in result["curve"]}
        if not shares or any(gains.get(share) != gain for share, gain in shares.items()):
            yield f"the curve of {result['policy']} on {result['outcome']} is not the JSON's"
        # A choice holds for the other figures too.
        bins = [bin for bin in result["calibration"] if bin["observed"] is not None]
        drawn = page.run("return document.getElementById('calibration-chart').data[0]")
        if [drawn["x"], drawn["y"]] != [[bin[key] for bin in bins] for key in ("predicted", "observed")]:
            yield f"the calibration of {result['policy']} on {result['outcome']} is not the JSON's"
        n_compared += 1
    if n_compared == 0:
        yield "nothing could be compared"


def compare_learners(page, expected):
    n_compared = 0
    for cell in expected["learners"][0]["cells"]:
        own = [next(c for c in learner["cells"] if all(c[k] == cell[k] for k in ("population", "outcome", "policy")))
               for learner in expected["learners"]]
        values = [m["value"] for c in own for m in c["metrics"] if m["metric"] == "auuc"]
        if not values:
            continue
        for key in ("population", "outcome", "policy"):
            select(page, "auuc", key, cell[key] or "all policies")
        if page.run("return document.getElementById('auuc-chart').data[0].x") != values:
            yield f"AUUC of {cell['policy']} on {cell['outcome']} is not the JSON's"
        n_compared += 1
    if n_compared == 0:
        yield "nothing could be compared"


def select(page, panel, key, value):
    page.run("""const select = document.querySelector('#' + arguments[0] + ' select[data-key="' + arguments[1] + '"]');
      if (select) { select.value = arguments[2]; select.dispatchEvent(new Event('change')); }""", panel, key, value)


def print_page(page, path):
    """The page on paper: every chart is drawn."""
    import base64
    pdf = base64.b64decode(page.post("print", {"background": True}))
    path.write_bytes(pdf)
    page.run("dispatchEvent(new Event('beforeprint'))")
    for figure, marks in page.run(MARKS):
        if marks == 0:
            yield f"chart `{figure}` is not drawn for print"
    page.run("dispatchEvent(new Event('afterprint'))")


if __name__ == "__main__":
    sys.exit(main())
