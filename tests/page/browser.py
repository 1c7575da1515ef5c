"""A headless Chromium, driven over the DevTools protocol: JSON messages, ended by a zero byte, on two pipes.
Needs Debian's package chromium and nothing else.
"""
import base64
import collections
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

KEYS = {
    "Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "ArrowDown": (40, ""), "ArrowUp": (38, ""), "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""), " ": (32, " "),
}


class BrowserError(Exception):
    """The browser refused a command, did not answer, or a script in the page failed."""


def find_browser():
    """The path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


def pipe():
    """A pipe (reading end, writing end) clear of the descriptors 3 and 4, which the browser wants."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """One browser with one page. Use it in a `with` statement: leaving it ends the process and its folder."""

    def __init__(self, path):
        self.folder = tempfile.mkdtemp(prefix="vlp-browser-")
        to_browser, self.out = pipe()
        self.inp, from_browser = pipe()
        flags = [
            "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--disable-extensions", "--disable-default-apps", "--hide-scrollbars", "--mute-audio",
            "--force-color-profile=srgb", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ]
        # The browser reads from descriptor 3 and writes to 4.
        start = f'exec "$@" 3<&{to_browser} 4>&{from_browser} {to_browser}<&- {from_browser}>&-'
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(["bash", "-c", start, "bash", path, *flags, "about:blank"], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, pass_fds=(to_browser, from_browser), start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.ids = 0
        self.session = None
        self.events = collections.deque()
        self.problems = []   # what the console, the page and the content security policy complained about
        self.requests = []   # addresses of everything the page asked for
        targets = self.send("Target.getTargets")["targetInfos"]
        target = next(item["targetId"] for item in targets if item["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.send("Browser.close", timeout=5)
        except (BrowserError, OSError):
            pass
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.out)
        os.close(self.inp)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- messages ----

    def _read(self, deadline):
        """The next message, or None at the deadline."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inp], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.inp, 1 << 16)
            if not part:
                with open(os.path.join(self.folder, "log"), errors="replace") as log:
                    raise BrowserError("the browser has ended: " + log.read()[-800:])
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, message):
        """Keeps what tests look at."""
        method, values = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(("exception", values["exceptionDetails"].get("exception", {}).get("description", str(values))))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.problems.append(("console", " ".join(str(item.get("value", item.get("description"))) for item in values["args"])))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.problems.append((values["entry"]["source"], values["entry"]["text"]))
        self.events.append(message)
        while len(self.events) > 1000:
            self.events.popleft()

    def send(self, method, timeout=30, **params):
        """Sends a command and waits for its answer."""
        self.ids += 1
        message = {"id": self.ids, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._read(deadline)
            if answer is None:
                raise BrowserError(f"{method}: no answer within {timeout} s")
            if answer.get("id") == self.ids:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self._note(answer)

    # ---- the page ----

    def evaluate(self, script):
        """The value of a JavaScript expression; a promise is awaited."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(f"{script[:200]}: {details.get('exception', {}).get('description', details)}")
        return result["result"].get("value")

    def wait(self, script, timeout=15):
        """Waits until an expression is true."""
        deadline = time.monotonic() + timeout
        while True:
            if self.evaluate(f"Boolean({script})"):
                return
            if time.monotonic() > deadline:
                raise BrowserError(f"waited {timeout} s in vain for: {script}\n  the page shows: "
                                   + str(self.evaluate("document.body.innerText"))[:600])
            time.sleep(0.03)

    def open(self, address):
        """Loads an address anew, also where only the part behind # differs."""
        self.send("Page.navigate", url="about:blank")
        self.wait("document.readyState === 'complete' && location.href === 'about:blank'")
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def size(self, width, height, touch=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.send("Emulation.setTouchEmulationEnabled", enabled=touch)

    def media(self, scheme="light", motion="no-preference"):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": motion}])

    def key(self, name, shift=False):
        code, text = KEYS.get(name, (ord(name[0].upper()), name))
        values = {"key": name, "code": name if len(name) > 1 else "", "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown", **values, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, text):
        for symbol in text:
            self.key(symbol)

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector):
        """Clicks in the middle of the first element that fits, scrolled into view."""
        box = self.evaluate("""(() => { const node = document.querySelector(%s); if (!node) return null;
            node.scrollIntoView({block: "center", inline: "center"}); const box = node.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2]; })()""" % json.dumps(selector))
        if box is None:
            raise BrowserError(f"nothing to click: {selector}")
        self.mouse("mouseMoved", *box)
        self.mouse("mousePressed", *box, button="left", clickCount=1)
        self.mouse("mouseReleased", *box, button="left", clickCount=1)

    def screenshot(self, path, whole=False):
        """A PNG of what is seen, or of the whole page."""
        params = {"format": "png"}
        if whole:
            size = self.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            params.update(captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot", **params)["data"]))

    def accessibility(self):
        """The nodes of the accessibility tree."""
        return self.send("Accessibility.getFullAXTree")["nodes"]
