"""A browser driven through chromedriver's WebDriver interface, with the standard library alone."""

import base64
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


class CannotInstall(Exception):
    """There is no browser, and none can be installed here."""


class WebDriverError(Exception):
    """The browser refused a command."""


def find_browser():
    """The paths of Chromium and its driver, installed by apt-get where that is possible."""
    if not paths():
        install()
    found = paths()
    if not found:
        raise CannotInstall("apt-get installed no chromium and chromedriver")
    return found


def paths():
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def install():
    if not shutil.which("apt-get"):
        raise CannotInstall("chromium and chromedriver are not installed, and there is no apt-get")
    packages = ["chromium", "chromium-driver", "fonts-dejavu-core"]
    elevate = [] if is_root() else ["sudo", "-n"]
    if elevate and not shutil.which("sudo"):
        raise CannotInstall("chromium and chromedriver are not installed, and only root may install them")
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *packages]):
        try:
            subprocess.run(elevate + command, check=True, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.SubprocessError) as error:
            raise CannotInstall((getattr(error, "stderr", None) or str(error)).strip()) from error


def is_root():
    import os
    return hasattr(os, "geteuid") and os.geteuid() == 0


class Browser:
    """A headless Chromium; use it as a context."""

    def __init__(self, browser, driver):
        self.profile = tempfile.TemporaryDirectory(prefix="poul-browser-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = None
        # The driver is on this machine, whatever proxy the others are behind.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.wait_for_driver()
        options = {
            "binary": browser,
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run",
                     f"--user-data-dir={self.profile.name}"],
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = self.request("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.session:
                self.request("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=20)
            try:
                self.profile.cleanup()
            except OSError:
                pass  # The browser may still be letting go of its profile.

    def wait_for_driver(self):
        for _ in range(150):
            try:
                if self.request("GET", "/status")["ready"]:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise WebDriverError("chromedriver did not start")

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with self.opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise WebDriverError(json.load(error)["value"]["message"]) from error

    def post(self, path, body):
        return self.request("POST", f"/session/{self.session}/{path}", body)

    def open(self, path: pathlib.Path):
        self.post("url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        """The value of a function body in the page."""
        return self.post("execute/sync", {"script": script, "args": list(arguments)})

    def tools(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self.post("goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        return self.post("se/log", {"type": kind})

    def wait(self, script, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.1)
        raise WebDriverError(f"not within {seconds} s: {script}")

    def screen(self, width, height=900):
        self.tools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, path: pathlib.Path):
        """The whole page, top to bottom."""
        height = self.run("return Math.ceil(document.documentElement.scrollHeight)")
        width = self.run("return window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.tools("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
