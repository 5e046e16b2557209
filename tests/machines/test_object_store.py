"""Results in an object store: a local S3 server (moto from PyPI), reached over HTTP, that fails now and then."""

import http.server
import json
import random
import signal
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

from support import CACHE, ASSIZE, MachineTest, assize, environment, files_with_secret, free_port, wait_until

SERVER = CACHE / "s3/bin/moto_server"


class Unreliable(http.server.BaseHTTPRequestHandler):
    """Passes requests on; every so often it answers with an error instead."""

    upstream = ""
    failures = 0.0
    requests = {}
    protocol_version = "HTTP/1.1"

    def handle_request(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else None
        Unreliable.requests[self.command] = Unreliable.requests.get(self.command, 0) + 1
        if random.random() < Unreliable.failures:
            self.answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection",)}
        # Without a type urllib calls a body a form, which the server would read as one.
        headers.setdefault("content-type", "application/octet-stream")
        request = urllib.request.Request(self.upstream + self.path, data=body, headers=headers, method=self.command)
        try:
            with urllib.request.urlopen(request) as answer:
                self.answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, dict(error.headers), error.read())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "server", "date"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except ConnectionError:
            # A machine that is killed hangs up.
            self.close_connection = True

    def log_message(self, *_):
        pass


@unittest.skipUnless(SERVER.exists(), "no S3 server is installed (tests/machines/install.sh s3)")
class ObjectStoreTest(MachineTest):
    repetitions = 3

    def setUp(self):
        super().setUp()
        port, proxy_port = free_port(), free_port()
        log = open(self.directory / "moto.log", "wb")
        self.addCleanup(log.close)
        server = subprocess.Popen([SERVER, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        upstream = f"http://127.0.0.1:{port}"

        def is_up():
            try:
                urllib.request.urlopen(urllib.request.Request(f"{upstream}/results", method="PUT"))
                return True
            except OSError:
                return False

        wait_until(is_up, 60, "the S3 server is up and has a bucket")
        Unreliable.upstream, Unreliable.failures, Unreliable.requests = upstream, 0.1, {}
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", proxy_port), Unreliable)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        self.env = environment(
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{proxy_port}",
            AWS_ACCESS_KEY_ID="tester",
            AWS_SECRET_ACCESS_KEY="hunter2-correct-horse-battery",
            AWS_REGION="us-east-1",
            ASSIZE_UPLOAD_SECONDS="1",
        )

    def shard(self, number, count, machine):
        return [
            "run", "-q", "--shard", f"{number}/{count}", "--resume", "auto", "--output", str(self.directory / machine),
            "--results", "s3://results/nightly",
        ]

    def test_shards_without_a_shared_disk_survive_lost_machines_and_failing_requests(self):
        count = 4
        for number in range(1, count + 1):
            # Every first machine is lost in the middle, with its disk.
            lost = subprocess.Popen([ASSIZE, *self.shard(number, count, f"lost-{number}")], cwd=self.suite, env=self.env)
            before = Unreliable.requests.get("PUT", 0)
            wait_until(lambda: Unreliable.requests.get("PUT", 0) > before or lost.poll() is not None, 60, "a part is uploaded")
            time.sleep(0.2)
            lost.send_signal(signal.SIGKILL)
            lost.wait()
            subprocess.run(["rm", "-rf", str(self.directory / f"lost-{number}")], check=True)
            assize(self.suite, *self.shard(number, count, f"machine-{number}"), env=self.env)
        print("requests:", dict(Unreliable.requests))
        merged = assize(self.suite, "merge", "s3://results/nightly", "--out", self.directory / "merged", "--json", env=self.env)
        merged = json.loads(merged.stdout)
        self.assertEqual((merged["missing"], merged["repeated"]), (0, 0))
        self.check_merged(self.directory / "merged")
        self.assertEqual(files_with_secret(self.directory), [])

    def test_results_that_cannot_be_uploaded_are_kept_and_uploaded_later(self):
        Unreliable.failures = 0.0
        started = subprocess.Popen(
            [ASSIZE, *self.shard(1, 2, "machine")], cwd=self.suite, env=self.env, stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: Unreliable.requests.get("PUT", 0) > 0, 60, "a part is uploaded")
        Unreliable.failures = 1.0
        _, said = started.communicate(timeout=600)
        self.assertEqual(started.returncode, 1, said)
        self.assertIn("tries again", said)
        Unreliable.failures = 0.0
        assize(self.suite, *self.shard(1, 2, "machine"), env=self.env)
        merged = assize(self.suite, "merge", "s3://results/nightly", "--out", self.directory / "merged", "--json", env=self.env, expect=(5,))
        self.assertEqual(json.loads(merged.stdout)["rows"], self.scenarios * self.repetitions)


if __name__ == "__main__":
    unittest.main(verbosity=2)
