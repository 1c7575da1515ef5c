"""What the tests of `vlp serve` share: a small run, a server, requests, raw sockets."""
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

PROGRAM = None
FOLDER = None
JSON = {"Content-Type": "application/json"}


def vlp(*arguments, code=0):
    """What the program prints on standard output."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


def make_run(name, *settings):
    """A run on a generated family, trained for a moment."""
    data, run = os.path.join(FOLDER, "people"), os.path.join(FOLDER, name)
    if not os.path.exists(data):
        vlp("data", "family", data, "--families", "4", "--generations", "3", "-q")
    options = ["steps=30", "batch=32", "negatives=8", "dim=8", "references=3", *settings]
    vlp("train", data, "-o", run, "--time", "off", "-q", *[x for o in options for x in ("--set", o)])
    return run


def triples():
    with open(os.path.join(FOLDER, "people", "train.txt"), encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file]


class Server:
    def __init__(self, run, *options):
        self.log = open(os.path.join(FOLDER, "log"), "w+b")
        self.process = subprocess.Popen([PROGRAM, "serve", run, "--port", "0", "--json", *options],
                                        stdout=subprocess.PIPE, stderr=self.log)
        ready = json.loads(self.process.stdout.readline())
        assert ready["pid"] == self.process.pid
        self.url = ready["url"]
        self.port = urllib.parse.urlsplit(self.url).port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(60) == 0
        self.process.stdout.close()
        self.log.close()

    def said(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, path, method="GET", body=None, headers=None, connection=None):
        """Status, headers and body."""
        mine = connection or self.connect()
        try:
            if isinstance(body, (dict, list)):
                body, headers = json.dumps(body), {**JSON, **(headers or {})}
            mine.request(method, path, body, headers or {})
            reply = mine.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            if not connection:
                mine.close()

    def get(self, path, status=200, **parameters):
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters, doseq=True)
        got, _, body = self.ask(path)
        assert got == status, (path, got, body)
        return json.loads(body)

    def post(self, path, body, status=200):
        got, _, text = self.ask(path, "POST", body)
        assert got == status, (path, body, got, text)
        return json.loads(text)

    def raw(self, data, timeout=60):
        """Everything that comes back for these bytes until the server closes, or nothing more comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as link:
            got = b""
            try:  # it may close before all is sent
                link.sendall(data)
                link.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            try:
                while piece := link.recv(65536):
                    got += piece
            except OSError:
                pass
            return got

    def metric(self, name):
        _, _, body = self.ask("/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in body.decode().splitlines()
                   if line.split("{")[0].split(" ")[0] == name)


class Load:
    """Threads that ask again and again until they are stopped; `failures` is what went wrong."""

    def __init__(self, server, paths, threads=8, accept=(200,)):
        self.server, self.paths, self.accept = server, paths, accept
        self.failures, self.answered, self.ending = [], 0, False
        self.statuses = {}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(threads)]

    def work(self, number):
        connection = self.server.connect()
        sent = False
        for i in range(number, 10**9):
            if self.ending:
                break
            try:
                sent = False
                connection.request("GET", self.paths[i % len(self.paths)])
                sent = True
                reply = connection.getresponse()
                reply.read()
                with self.lock:
                    self.answered += 1
                    self.statuses[reply.status] = self.statuses.get(reply.status, 0) + 1
                    if reply.status not in self.accept:
                        self.failures.append((self.paths[i % len(self.paths)], reply.status))
                if reply.getheader("Connection") == "close":
                    connection.close()
                    connection = self.server.connect()
            except OSError as fault:
                with self.lock:
                    self.failures.append((sent, repr(fault)))
                break
            except http.client.HTTPException as fault:
                with self.lock:
                    self.failures.append((sent, repr(fault)))
                break
        connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def wait(self, more):
        """Until this many more are answered."""
        goal, end = self.answered + more, time.time() + 60
        while self.answered < goal and time.time() < end and not self.failures:
            time.sleep(0.01)

    def __exit__(self, *_):
        self.ending = True
        for thread in self.threads:
            thread.join()


def allow_files():
    """As many open files as the system permits; returns how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
