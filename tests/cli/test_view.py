"""`dic view` and `dic report` without a browser: python test_view.py DIC"""

import gzip
import http.client
import json
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import cv2
import numpy as np

import dic_program
from dic_program import ProgramTest, main
from view_server import ViewServer

SHIFTS = [(0, 0), (0.3, -0.2), (1.6, 0.8)]
SOON = 8  # s, on a loaded machine; slow clients are closed after 10
QUICK = "subset = 21\nstep = 10\nno-pictures = true\n"


class ViewTest(ProgramTest):
    def view(self, *arguments, env=None):
        server = ViewServer(dic_program.PROGRAM, self.folder, *arguments, env=env)
        self.addCleanup(server.stop)
        return server

    def frames(self):
        return self.view(*self.sequence(SHIFTS), "--no-browser")

    def wait(self, server, until=lambda run: run["state"] != "running"):
        for _ in range(600):
            run = server.get_json("api/run")
            if until(run):
                return run
            time.sleep(0.05)
        self.fail("the measurement does not end")

    # Who may ask ----------------------------------------------------------------------------------

    def test_answers_only_its_own_page(self):
        server = self.frames()
        self.assertGreaterEqual(len(server.token), 32)
        self.assertEqual(server.ask("GET", "")[0], 200)
        self.assertEqual(server.ask("GET", "/")[0], 404)
        self.assertEqual(server.ask("GET", "/" + "0" * len(server.token) + "/")[0], 404)
        self.assertEqual(server.ask("GET", "/" + server.token[:-1] + "/api/state")[0], 404)
        for host in ("evil.example", f"evil.example:{server.port}", f"localhost:{server.port}", "127.0.0.1"):
            self.assertEqual(server.ask("GET", "api/state", host=host)[0], 403, host)
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}"):
            self.assertEqual(server.ask("GET", "api/state", headers={"Origin": origin})[0], 403, origin)
        body = json.dumps({"toml": QUICK}).encode()
        json_type = {"Content-Type": "application/json"}
        for headers in ({}, json_type, {"Origin": server.origin}, {"Origin": "http://evil.example", **json_type},
                        {"Origin": server.origin, "Content-Type": "text/plain"}):
            self.assertEqual(server.ask("POST", "api/run", body, headers)[0], 403, headers)
        self.assertEqual(server.ask("PUT", "api/run", body, {"Origin": server.origin, **json_type})[0], 405)
        self.assertEqual(server.get_json("api/run")["state"], "idle")
        self.assertFalse((self.folder / "dic_out").exists())

    def test_listens_on_the_loopback_address_only(self):
        server = self.frames()
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.2", server.port), timeout=5)

    def test_page_may_load_nothing_from_elsewhere(self):
        server = self.frames()
        _, headers, page = server.ask("GET", "")
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("connect-src 'self'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn(b"//", page.replace(b"<!doctype", b""))
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")

    # Clients that wish it ill ------------------------------------------------------------------------

    def connect(self, server, data=b""):
        client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        self.addCleanup(client.close)
        client.sendall(data)
        return client

    def answers_soon(self, server):
        begin = time.monotonic()
        self.assertEqual(server.ask("GET", "api/run")[0], 200)
        self.assertLess(time.monotonic() - begin, SOON)

    def drip(self, clients):
        """Every client sends a byte of an endless head a second, until the returned event is set."""
        over = threading.Event()

        def work():
            while not over.wait(0.5):
                for client in clients:
                    try:
                        client.sendall(b"a")
                    except OSError:
                        pass  # it was closed

        threading.Thread(target=work, daemon=True).start()
        self.addCleanup(over.set)

    def test_slow_clients_cost_the_page_nothing(self):
        server = self.frames()
        secret = f"GET /{server.token}/api/run HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
        kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)  # of a browser
        kept.request("GET", f"/{server.token}/api/run")
        self.assertEqual(kept.getresponse().read()[:1], b"{")
        for head in (b"", b"GET /", b"GET / HTTP/1.1\r\nX: ", secret + b"X: ", secret.replace(b"GET", b"POST") + b"Content-Length: 9\r\n"):
            clients = [self.connect(server, head) for _ in range(150)]
            self.drip(clients)
            self.answers_soon(server)
            kept.request("GET", f"/{server.token}/api/run")  # strangers were closed instead
            answer = kept.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200)
        complete = b"GET /wrong HTTP/1.1\r\nHost: x\r\n\r\n"
        for _ in range(20):
            self.connect(server, complete * 50)
        self.answers_soon(server)

    def test_slow_clients_are_closed(self):
        server = self.frames()
        clients = [self.connect(server, b"GET / HTTP/1.1\r\nX: "), self.connect(server)]
        begin = time.monotonic()
        self.drip(clients[:1])
        for client in clients:
            client.settimeout(30)
            try:
                self.assertEqual(client.recv(100), b"")
            except ConnectionError:
                pass
        self.assertLess(time.monotonic() - begin, 20)

    def test_clients_that_never_read(self):
        names = self.sequence(SHIFTS[:2], size=(1500, 2000))
        server = self.view(*names, "--no-browser")
        asks = f"GET /{server.token}/api/image/reference HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
        for _ in range(40):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(asks * 20)
            self.addCleanup(client.close)
        self.answers_soon(server)
        self.assertEqual(len(server.ask("GET", "api/image/reference")[2]), 1500 * 2000)
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begin, SOON)

    def test_sigterm_at_once(self):
        names = self.sequence(SHIFTS)
        for _ in range(20):
            server = ViewServer(dic_program.PROGRAM, self.folder, *names, "--no-browser")
            self.assertEqual(server.stop(), 0)

    def test_sigterm_waits_for_no_client(self):
        server = self.frames()
        secret = f"POST /{server.token}/api/run HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
        secret += b"Origin: " + server.origin.encode() + b"\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        self.drip([self.connect(server, head) for head in (b"", b"GET / HTTP/1.1\r\nX: ", secret) for _ in range(30)])
        time.sleep(1)
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begin, SOON)

    def test_several_requests_at_once(self):
        server = self.frames()
        ask = f"GET /{server.token}/api/run HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        client = self.connect(server, (f"{ask}\r\n" * 60 + f"{ask}Connection: close\r\n\r\n").encode())
        answer = b"".join(iter(lambda: client.recv(65536), b""))
        self.assertEqual(answer.count(b"HTTP/1.1 200"), 61)
        body = json.dumps({"toml": QUICK}).encode()
        head = (f"POST /{server.token}/api/settings HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {server.origin}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode()
        client = self.connect(server)
        for part in (head[:30], head[30:], body[:5], body[5:]):  # a slow, but honest one
            client.sendall(part)
            time.sleep(0.2)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)

    def test_bodies_of_any_length(self):
        server = self.frames()
        head = (f"POST /{server.token}/api/settings HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {server.origin}\r\n"
                f"Content-Type: application/json\r\n").encode()
        client = self.connect(server, head + b"Expect: 100-continue\r\nContent-Length: 11\r\nConnection: close\r\n\r\n")
        self.assertTrue(client.recv(1000).startswith(b"HTTP/1.1 100"))
        client.sendall(b'{"toml":""}')
        self.assertTrue(b"".join(iter(lambda: client.recv(65536), b"")).startswith(b"HTTP/1.1 200"))
        client = self.connect(server, head + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            for _ in range(1000):
                client.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                sent += 65536
            answer = client.recv(100)
            self.assertNotIn(b"200", answer)
        except OSError:
            self.assertGreater(sent, 16 << 20)
        self.answers_soon(server)
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        self.assertLess(int(re.search(r"VmHWM:\s+(\d+)", status)[1]), 100_000 if not dic_program.is_sanitized() else 10**7)

    def test_bodies_are_not_inflated(self):
        server = self.frames()
        bomb = gzip.compress(bytes(1 << 28), 9)
        for encoding in ("gzip", "deflate", "br", "identity", "GZIP"):
            status, headers, _ = server.ask("POST", "api/settings", bomb, {"Origin": server.origin, "Content-Type": "application/json",
                                                                           "Content-Encoding": encoding})
            self.assertEqual((status, headers["Connection"]), (415, "close"), encoding)
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        self.assertLess(int(re.search(r"VmHWM:\s+(\d+)", status)[1]), 300_000 if not dic_program.is_sanitized() else 10**7)

    def test_settings_are_no_bombs(self):
        server = self.frames()
        deep = "a." * 100_000 + "b"
        for toml in (f"[{deep}]\nx = 1\n", f"{deep} = 1\n", f"x = {{{deep} = 1}}\n", "[[a]]\nsubset = 21\n", '"a.b" = 1\n',
                     "\n".join("[" + "a." * 15 + f"b{i}]\nx=1" for i in range(20_000)), "subset = " + "9" * 10**6):
            status, answer = server.post("api/settings", {"toml": toml})
            if status == 200:  # what no option can mean is found where it is used
                status, answer = server.post("api/preview", {"toml": toml})
            self.assertEqual(status, 400, toml[:40])
            self.assertTrue(json.loads(answer)["error"].endswith("."), answer)
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        self.assertLess(int(re.search(r"VmHWM:\s+(\d+)", status)[1]), 500_000 if not dic_program.is_sanitized() else 10**7)

    # What can be read and written -------------------------------------------------------------------

    def test_paths_lead_nowhere(self):
        server = self.frames()
        (self.folder / "secret").write_text("secret")
        for path in ("web/../secret", "web/../../../../etc/passwd", "web/%2e%2e/secret", "web/..%2fsecret", "secret",
                     "api/image/../secret", "api/image/%2e%2e%2fsecret", "api/image/0/../../secret", "api/image/-1",
                     "api/image/99", "api/field/u/0", "api/field/..%2f/0", "api/live/u", "web/", "web/main.js/x",
                     "/" + server.token + "/../etc/passwd"):
            status, _, content = server.ask("GET", path)
            self.assertIn(status, (400, 404), path)
            self.assertNotIn(b"root:", content)
            self.assertNotEqual(content, b"secret")

    def test_settings_name_no_files_elsewhere(self):
        server = self.frames()
        for line in ('roi = "/etc/hostname"', 'camera = "../camera.json"', 'reference = "/etc/passwd"',
                     'output = "/tmp/elsewhere"', 'output = "../elsewhere"'):
            status, answer = server.post("api/run", {"toml": QUICK + line + "\n"})
            self.assertEqual(status, 400, line)
            self.assertIn("has to lie in", json.loads(answer)["error"])
        os.symlink("/etc", self.folder / "link")
        self.assertEqual(server.post("api/run", {"toml": QUICK + 'roi = "link/hostname"\n'})[0], 400)

    def test_opens_nothing_elsewhere(self):
        """The page chooses below the folder of the start: neither "..", nor links, nor what a file says, lead out of it."""
        outside = Path(tempfile.mkdtemp(dir=self.folder.parent))
        self.addCleanup(shutil.rmtree, outside)
        for k, image in enumerate(self.sequence(SHIFTS)):
            shutil.copy(self.folder / image, outside / f"secret_{k}.png")
        self.succeed("track", outside, "--subset", "21", "--step", "10", "--no-pictures", "-o", "of_secrets")
        self.succeed("track", outside, "--subset", "21", "--step", "10", "--no-pictures", "-o", outside / "result")
        (self.folder / "way").symlink_to(outside)
        mixed = self.folder / "mixed"
        mixed.mkdir()
        (mixed / "a.png").symlink_to(outside / "secret_0.png")
        shutil.copy(self.folder / "frame_0.png", mixed / "b.png")
        (self.folder / "trap").mkdir()
        (self.folder / "trap/result.vtkhdf").symlink_to(outside / "result/result.vtkhdf")
        (self.folder / "start.toml").write_text("subset = 41\n")
        server = self.view("--no-browser", "--config", "start.toml")
        self.assertEqual(server.get_json("api/state")["reference"], None)
        self.assertEqual(server.get_json("api/state")["values"], {"subset": "41"})
        for folder in (outside, "..", "way", "mixed/../..", "/etc", self.folder / "way"):
            for what, content in (("folder", {"folder": str(folder)}), ("open", {"path": str(folder)}), ("other", {"path": str(folder)})):
                status, answer = server.post(f"api/{what}", content)
                self.assertEqual(status, 400, (what, folder))
                self.assertNotIn(b"secret", answer)
        status, answer = server.post("api/folder", {"folder": ""})
        self.assertEqual(status, 200)
        listed = {entry["name"]: entry["kind"] for entry in json.loads(answer)["entries"]}
        self.assertEqual(listed, {"mixed": "folder", "of_secrets": "result", "trap": "result",
                                  **{f"frame_{k}.png": "image" for k in range(3)}})
        self.assertEqual(json.loads(answer)["parent"], "")
        for path in ("mixed", "trap", "way/result", "way/secret_0.png"):
            self.assertEqual(server.post("api/open", {"path": path})[0], 400, path)
        for path in ("mixed/a.png", "way/secret_0.png", str(outside / "secret_0.png")):
            for what, content in (("template", {"path": path}), ("targets", {"left": path}), ("targets", {"plane": path}),
                                  ("match", {"frame": 0, "max_matches": 1, "template": {"path": path}}), ("keep-camera", {"path": path})):
                status, answer = server.post(f"api/{what}", content)
                self.assertEqual(status, 400, (what, path))
                self.assertIn("where dic view was started", json.loads(answer)["error"])
        self.assertEqual(server.post("api/other", {"path": "trap"})[0], 400)
        # A result names its images: they are shown only where the page may read them.
        self.assertEqual(server.post("api/open", {"path": "of_secrets"})[0], 200)
        self.assertFalse(server.get_json("api/result")["has_images"])
        self.assertEqual(server.ask("GET", "api/image/reference")[0], 400)
        self.assertEqual(server.post("api/open", {"path": str(self.folder)})[0], 200)
        self.assertEqual(server.get_json("api/state")["frames"]["names"], ["frame_0.png", "frame_1.png", "frame_2.png"])

    def test_strain_is_changed_beside_the_result(self):
        self.succeed("track", *self.sequence(SHIFTS), "--subset", "21", "--step", "10", "--no-pictures")
        before = (self.folder / "dic_out/result.vtkhdf").read_bytes()
        scratch = self.folder / "scratch"
        scratch.mkdir()
        server = self.view("dic_out", "--no-browser", env={**os.environ, "TMPDIR": str(scratch)})
        for wrong in ({"window": 8, "measure": "hencky"}, {"window": 9, "measure": "big"}, {"window": "9", "measure": "hencky"}, {}):
            self.assertEqual(server.post("api/strain", wrong)[0], 400, wrong)
        for window in (7, 9):
            status, answer = server.post("api/strain", {"window": window, "measure": "hencky"})
            self.assertEqual(status, 200, answer)
            self.assertEqual(json.loads(answer)["strain"],
                             {"window": window, "measure": "hencky", "subset": 21, "stored": {"window": 5, "measure": "green-lagrange"}})
        self.assertEqual((self.folder / "dic_out/result.vtkhdf").read_bytes(), before)
        folder, = scratch.iterdir()
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertEqual(len(list(folder.iterdir())), 1)
        server.stop()
        self.assertEqual(list(scratch.iterdir()), [])

    def test_nonsense_is_refused_with_a_sentence(self):
        server = self.frames()
        for toml in ("subset = [", "unknown = 1", "subset = 20", 'roi-polygon = ["1,2"]', "[table]\nsubset = 21",
                     'csv = ["a", "b"]'):
            status, answer = server.post("api/preview", {"toml": toml})
            self.assertEqual(status, 400, toml)
            self.assertTrue(json.loads(answer)["error"].endswith("."), answer)
        for content in ({}, {"toml": 3}, [1], "text"):
            self.assertIn(server.post("api/run", content)[0], (400, 404))
        huge = json.dumps({"toml": "#" * (5 << 20)}).encode()
        try:
            self.assertEqual(server.ask("POST", "api/preview", huge, {"Origin": server.origin,
                                                                      "Content-Type": "application/json"})[0], 413)
        except OSError:
            pass  # the connection was closed before all was sent
        self.assertEqual(server.ask("GET", "api/state")[0], 200)

    # What it does -----------------------------------------------------------------------------------

    def test_measures_as_the_command_line_does(self):
        server = self.frames()
        toml = QUICK + 'roi-polygon = ["20,20 120,20 120,100 20,100"]\nroi-hole = ["60,50 80,50 80,70 60,70"]\n'
        status, answer = server.post("api/run", {"toml": toml})
        self.assertEqual(status, 200, answer)
        run = self.wait(server)
        self.assertEqual((run["state"], run["frame"], run["has_result"]), ("done", 2, True), run)
        self.assertEqual(sum(run["counts"].values()), 2 * self.run_json()["points"])
        (self.folder / "my.toml").write_text(toml)
        self.succeed("track", "frame_0.png", "frame_1.png", "frame_2.png", "--config", "my.toml", "-o", "typed")
        expected, fields = self.fields("typed"), self.fields()
        for name in ("u", "v", "exx", "status"):
            np.testing.assert_array_equal(fields[name], expected[name])
        result = server.get_json("api/result")
        self.assertEqual([frame["name"] for frame in result["frames"]], ["frame_1.png", "frame_2.png"])
        self.assertTrue(result["has_images"])
        values = np.frombuffer(server.ask("GET", "api/field/u/1")[2], np.float32)
        np.testing.assert_array_equal(values.reshape(fields["u"][1].shape), fields["u"][1].astype(np.float32))
        status, answer = server.post("api/run", {"toml": toml})
        self.assertEqual(status, 200)
        run = self.wait(server)
        self.assertEqual(run["state"], "failed")
        self.assertIn("already holds a result", run["error"])
        server.post("api/run", {"toml": toml, "force": True})
        run = self.wait(server)
        self.assertEqual(run["state"], "done", run)

    def test_outputs_that_do_not_exist_yet(self):
        server = self.frames()
        for output in ("second", "third/below", "./fourth", str(self.folder / "fifth"), "third/../sixth"):
            status, answer = server.post("api/run", {"toml": QUICK + f'output = "{output}"\n'})
            self.assertEqual(status, 200, (output, answer))
            self.assertEqual(self.wait(server)["state"], "done", output)
            self.assertTrue((self.folder / output / "result.vtkhdf").exists(), output)
        os.symlink(self.folder.parent, self.folder / "up")
        for output in ("up/elsewhere", "new/../../elsewhere", "new/../up/elsewhere", "a\\u0000/../../elsewhere"):
            self.assertEqual(server.post("api/run", {"toml": QUICK + f'output = "{output}"\n'})[0], 400, output)
        self.assertFalse((self.folder.parent / "elsewhere").exists())

    def test_a_refused_run_leaves_the_shown_result(self):
        names = self.sequence(SHIFTS)
        self.succeed("track", *names, "--subset", "21", "--step", "20", "--no-pictures", "-o", "shown")
        server = self.view("shown", *names, "--no-browser")
        expected = server.get_json("api/result")
        server.post("api/run", {"toml": QUICK + 'output = "shown"\n'})  # it holds a result
        self.assertEqual(self.wait(server)["state"], "failed")
        self.assertEqual(server.get_json("api/result"), expected)
        for toml in ("fps = -3\n", "subset = 4\n", "[table]\n", 'roi = "nothing.png"\n'):
            self.assertEqual(server.post("api/run", {"toml": QUICK.replace("subset = 21\n", "") + toml})[0], 400, toml)
            self.assertEqual(server.get_json("api/result"), expected)
            self.assertTrue(server.get_json("api/state")["result"])
        server.post("api/run", {"toml": QUICK + 'output = "next"\n'})
        self.assertEqual(self.wait(server)["state"], "done")
        server.post("api/run", {"toml": QUICK + 'output = "next"\n'})  # before the page asked for the result
        self.assertEqual(self.wait(server)["state"], "failed")
        self.assertEqual(server.get_json("api/result")["grid"]["step"], 10)

    def test_images_that_are_thin(self):
        thin = np.round(cv2.GaussianBlur(np.random.default_rng(1).uniform(0, 255, (20000, 3)), (3, 3), 0)).astype(np.uint8)
        for name in ("thin_0.png", "thin_1.png"):
            cv2.imwrite(str(self.folder / name), thin)
        server = self.view("thin_0.png", "thin_1.png", "--no-browser")
        status, headers, content = server.ask("GET", "api/image/reference")
        self.assertEqual((status, headers["X-Width"], headers["X-Height"], headers["X-Reduced"]), (200, "1", "4000", "5"))
        means = np.frombuffer(content, np.uint8)
        self.assertLess(np.abs(means - thin.reshape(4000, 15).mean(1)).max(), 0.51)

    def test_cancel_keeps_what_was_finished(self):
        names = self.sequence([(0.1 * k, 0) for k in range(60)], size=(200, 220))
        server = self.view(*names, "--no-browser")
        server.post("api/run", {"toml": "subset = 41\nstep = 2\nno-pictures = true\norder = 2\n"})
        self.wait(server, lambda run: run["live"] > 0 or run["state"] != "running")
        self.assertEqual(server.post("api/run", {"toml": QUICK})[0], 400)  # one at a time
        live = server.ask("GET", "api/live")
        server.post("api/cancel", {})
        run = self.wait(server)
        self.assertEqual(run["state"], "cancelled")
        if live[0] == 200:
            self.assertEqual(len(json.loads(live[2])["frames"]), 1)
        self.assertTrue(self.run_json()["interrupted"])
        self.assertEqual(server.stop(), 0)

    def test_preview_and_mask(self):
        server = self.frames()
        status, answer = server.post("api/preview", {"toml": QUICK + "noise = 2\n"})
        self.assertEqual(status, 200, answer)
        found = json.loads(answer)
        self.assertEqual(found["noise"], 2)
        self.assertEqual(found["points"], 12 * 14)
        self.assertIn(f"Subset {found['subset']} px", found["reason"])
        status, mask = server.post("api/mask", {"toml": 'roi-rect = "10,20,30,40"'})
        inside = np.frombuffer(mask, np.uint8).reshape(120, 140)
        self.assertEqual((inside != 0).sum(), 30 * 40)
        self.assertTrue(inside[20:60, 10:40].all())
        status, answer = server.post("api/settings", {"toml": 'subset = 33\nstep = 7\nanti-bias = true\n'})
        self.assertEqual(json.loads(answer)["values"], {"step": "7", "anti-bias": True})

    def test_probes_that_make_no_sense(self):
        self.succeed("track", *self.sequence(SHIFTS), "--subset", "21", "--step", "10", "--no-pictures")
        server = self.view("dic_out", "--no-browser")
        for asked in ({}, {"kind": "line"}, {"kind": "field", "points": [[1, 2]]}, {"kind": "point", "points": [[1]]},
                      {"kind": "point", "points": [["a", "b"]]}, {"kind": "area", "points": [[1, 2], [3, 4]]},
                      {"kind": "point", "points": [[50, 50]], "frame": 0}, {"kind": "point", "points": [[500, 50]]},
                      {"kind": "line", "points": [[20, 20], [90, 90]], "frame": 7}, {"kind": ["point"], "points": 3}):
            status, answer = server.post("api/probe", asked)
            self.assertEqual(status, 400, asked)
            self.assertTrue(json.loads(answer)["error"].endswith("."), answer)

    # A camera ----------------------------------------------------------------------------------------

    def camera_state(self, server, until):
        for _ in range(1200):
            state = server.get_json("api/camera/1")
            if until(state) or state["state"] == "failed":
                return state
            time.sleep(0.05)
        self.fail("the camera does not answer")

    def test_camera_requests_that_make_no_sense(self):
        server = self.view("--no-browser")
        good = {"camera": "fake"}
        outside = str(self.folder.parent / "elsewhere")
        for asked, words in (({}, "without a camera"), ({"camera": []}, "without a camera"), ({"camera": {}}, "No camera was named"),
                             ({"camera": {"camera": 3}}, "has to be text"), ({"camera": {**good, "fps": ["5", 5]}}, "has to be text"),
                             ({"camera": {**good, "fps": "many"}}, "The setting fps needs a number"),
                             ({"camera": {**good, "exposure": "-1"}}, "exposure must be"), ({"camera": {**good, "region": "0,0,0,1"}}, "region needs"),
                             ({"camera": {**good, "tcp": "0"}}, "no setting"), ({"camera": {**good, "udp": "h:1"}}, "no setting"),
                             ({"camera": {**good, "gain": "nan"}}, "gain"), ({"camera": {**good, "buffers": "1"}}, "buffers"),
                             ({"camera": {**good, "set": ["a=b"] * 201}}, "more than 200"), ({"camera": {"camera": "x" * 501}}, "too long"),
                             ({"camera": {"camera": "a\0b"}}, "null character"), ({"camera": {**good, "record": outside}}, "has to lie in"),
                             ({"camera": good, "toml": f'output = "{outside}"', "keep": True}, "has to lie in"),
                             ({"camera": good, "toml": "subset = 4"}, "subset"), ({"camera": good, "toml": "["}, "settings cannot be understood"),
                             ({"camera": good, "toml": 3}, "makes no sense"), ({"camera": good, "keep": "yes"}, "makes no sense"),
                             ({"camera": {**good, "only-extensometers": "true"}}, "No extensometer"),
                             ({"camera": {**good, "right-camera": "fake", "calibration": "a.json"}}, "the same one"),
                             ({"camera": {**good, "right-camera": "b", "calibration": outside}}, "has to lie in"),
                             ({"camera": {**good, "axes": "sphere"}}, "axes needs camera, plane"),
                             ({"camera": {**good, "axes-points": "1,2"}}, "three points"),
                             ({"camera": {**good, "correct-rig": "yes"}}, "true or false")):
            for what in ("look", "measure"):
                status, answer = server.post(f"api/camera-{what}", asked)
                self.assertEqual(status, 400, asked)
                self.assertIn(words.lower(), json.loads(answer)["error"].lower(), asked)
        for asked, words in (({**good, "right-camera": "b"}, "calibration"), ({**good, "axes": "plane"}, "no right camera"),
                             ({**good, "calibration": "a.json"}, "no right camera")):  # looking needs no calibration yet
            self.assertIn(words, json.loads(server.post("api/camera-measure", {"camera": asked})[1])["error"])
        for path in ("api/camera", "api/camera/", "api/camera/x", "api/camera/image", "api/camera/right", "api/camera/field", "api/camera/1/2", "api/camera/field/u/1",
                     "api/cameras/1"):
            self.assertIn(server.ask("GET", path)[0], (400, 404), path)
        self.assertEqual(server.get_json("api/camera/-5")["state"], "idle")
        self.assertEqual(server.post("api/camera-stop", {})[0], 200)

    def test_camera(self):
        if not self.cameras():
            self.skipTest("there is no Aravis")
        self.succeed("track", *self.sequence(SHIFTS), "--subset", "21", "--step", "10", "--no-pictures")
        server = self.view("dic_out", "--no-browser")
        camera = {"camera": "fake", "fps": "20", "region": "0,0,128,96"}
        self.assertEqual(server.post("api/camera-look", {"camera": camera})[0], 200)
        state = self.camera_state(server, lambda state: state["image"] > 2)
        self.assertEqual(state["state"], "looking", state)
        status, headers, content = server.ask("GET", "api/camera/image")
        self.assertEqual((headers["X-Width"], headers["X-Height"], headers["X-Type"], len(content)), ("128", "96", "u8", 128 * 96))
        self.assertEqual(server.ask("GET", "api/camera/field")[0], 400)
        self.assertEqual(server.get_json("api/result")["frames"][0]["number"], 1)

        # While it writes, no result is read.
        asked = {"camera": {**camera, "extensometer": ["30,40,90,40"], "drop": "never"}, "keep": True,
                 "toml": 'subset = 21\nstep = 8\nscale = 0.5\noutput = "live"\n'}
        self.assertEqual(server.post("api/camera-measure", asked)[0], 200)
        state = self.camera_state(server, lambda state: state["field"] > 2)
        self.assertEqual(state["state"], "measuring", state)
        self.assertEqual(server.ask("GET", "api/result")[0], 400)
        for path, body in (("api/open", {"path": "dic_out"}), ("api/camera-look", {"camera": camera})):
            status, answer = server.post(path, body)
            self.assertEqual((status, "stop it first" in json.loads(answer)["error"]), (400, True), path)
        meta = server.get_json("api/camera/field")
        self.assertEqual((meta["image"], meta["length_unit"]), ({"width": 128, "height": 96}, "mm"))
        grid = meta["grid"]
        self.assertEqual(len(server.ask("GET", "api/camera/field/exx")[2]), 4 * grid["nx"] * grid["ny"])
        self.assertEqual(server.ask("GET", "api/camera/field/nothing")[0], 400)
        server.post("api/camera-stop", {})
        state = self.camera_state(server, lambda state: state["state"] == "ended")
        self.assertEqual([entry[0] for entry in state["history"]], list(range(1, state["results"] + 1)))
        self.assertEqual(server.get_json(f"api/camera/{state['results']}")["history"], state["history"][-1:])
        fields = self.fields("live")
        self.assertEqual(len(fields["exx"]), state["results"])
        np.testing.assert_allclose([entry[2] for entry in state["history"]], np.nanmean(fields["exx"], axis=(1, 2)), atol=1.5e-3)
        self.assertEqual(server.post("api/open", {"path": "live"})[0], 200)
        self.assertEqual(len(server.get_json("api/result")["frames"]), state["results"])

        # A result is replaced only if that was asked for.
        self.assertEqual(server.post("api/camera-measure", asked)[0], 200)
        state = self.camera_state(server, lambda state: state["field"] > 0)
        self.assertEqual(state["state"], "failed")
        self.assertIn("live", state["error"])
        self.assertEqual(server.stop(), 0)

    def cameras(self):
        return "Aravis" not in self.dic("live", "--list").stderr

    # Loads ------------------------------------------------------------------------------------------

    def measured(self, *options):
        self.succeed("track", *self.sequence(SHIFTS), "--subset", "21", "--step", "10", "--no-pictures", *options)
        return self.view("dic_out", "--no-browser")

    def loads(self, server, text, **more):
        status, answer = server.post("api/loads", {"name": "machine.csv", "text": text, **more})
        self.assertEqual(status, 200, answer)
        return json.loads(answer)

    def test_loads_of_machines(self):
        """Two frames at 1 s and 2 s with 500 N and 1000 N."""
        server = self.measured("--fps", "1")
        for text in ("frame,force [kN]\n1,0.5\n2,1\n",
                     "Time (ms);Force (N)\n0;0\n1000;500\n2000;1000\n",
                     "Zeit [min];Kraft [kN]\n0;0\n0,033333333333333;1,0\n",
                     "Specimen;A12\nOperator;Ann\n\nZeit;Kraft\n(s);(kN)\n0;0,0\n2;1,0\n",
                     "\ufeffTime,Load\ns,N\n0,0\n1,500\n2,\"1,000.0\"\n",
                     "Force_kN\n0,5\n1,0\n",
                     f"F / lbf\n0\n{500 / 4.4482216152605}\n{1000 / 4.4482216152605}\n",
                     "h:mm:ss\tF [mN]\n0:00:00\t0\n0:00:02\t1000000\n"):
            answer = self.loads(server, text)
            self.assertNotIn("problem", answer, text)
            np.testing.assert_allclose(answer["values"], [500, 1000], rtol=1e-6, err_msg=text)
            self.assertTrue(answer["title"].endswith("[N]"), answer)
            answer = self.loads(server, text, area=20)
            self.assertEqual(answer["title"], "stress [MPa]")
            np.testing.assert_allclose(answer["values"], [25, 50], rtol=1e-6, err_msg=text)
        answer = self.loads(server, "frame,load,Extension [mm]\n2,7,0.5\n")
        self.assertEqual((answer["column"], answer["columns"]), ("load", ["frame", "load", "Extension [mm]"]))
        self.assertEqual(answer["values"], [None, 7])
        self.assertIn("1 of 2 frames have no load", answer["note"])
        answer = self.loads(server, "frame,load,Extension [mm]\n1,7,0.5\n2,8,0.25\n", column="Extension [mm]")
        self.assertEqual((answer["title"], answer["values"]), ("Extension [mm]", [0.5, 0.25]))

    def test_refused_loads_are_those_of_dic_probe(self):
        server = self.measured()
        for text, column, area in (("frame,Upper force [N],Lower force [N]\n1,2,3\n2,3,4\n", None, 0), ("frame,a,b\n1,2,3\n2,3,4\n", None, 0),
                                   ("Force [KPH]\n1\n2\n", None, 0), ("frame,Force [Mn]\n1,2\n2,3\n", None, 0),
                                   ("Time,Force [N]\n1,2\n2,3\n", None, 0),
                                   ("Force [N]\n1\n2\n3\n4\n5\n", None, 0), ("frame,Extension [mm]\n1,2\n2,3\n", None, 5),
                                   ("frame,Force [N]\n1,1\n2,2\n", "Kraft", 0), ("frame,force [N]\n1,1,5\n2,2,5\n", None, 0),
                                   ("frame,force [N]\n7,1\n8,1\n", None, 0), ("frame,force [N]\n1,2.5\n1,2.5\n", None, 0),
                                   ("1,2\n2,3\n", None, 0), ("frame;force [N]\n1;1,234\n2;1.234\n", None, 0), ("", None, 0), ("words", None, 0)):
            (self.folder / "machine.csv").write_text(text)
            choices = (*(("--load-column", column) if column else ()), *(("--section", str(area)) if area else ()))
            run = self.dic("probe", "dic_out", "--point", "60,60", "--loads", "machine.csv", *choices, "-o", "never")
            self.assertNotEqual(run.returncode, 0, text)
            status, answer = server.post("api/loads", {"name": "machine.csv", "text": text, "column": column, "area": area})
            answer = json.loads(answer)
            self.assertNotIn("values", answer)
            sentence = answer["problem"] if status == 200 else answer["error"]
            self.assertIn(sentence, run.stderr)
            self.assertTrue(sentence.endswith("."), sentence)
        answer = self.loads(server, "frame,Upper force [N],Lower force [N]\n1,2,3\n2,3,4\n")
        self.assertEqual(answer["columns"], ["frame", "Upper force [N]", "Lower force [N]"])
        answer = self.loads(server, "frame,Upper force [N],Lower force [N]\n1,2,3\n2,3,4\n", column="Lower force [N]")
        self.assertEqual(answer["values"], [3, 4])

    def test_loads_that_make_no_sense(self):
        server = self.measured()
        good = {"name": "a.csv", "text": "frame,force [N]\n1,2\n2,3\n"}
        for asked in ({}, {"text": "x"}, {"name": "x"}, {**good, "text": 3}, {**good, "name": None}, {**good, "text": "a\0b,c\n1,2\n"}):
            status, answer = server.post("api/loads", asked)
            self.assertEqual(status, 400, asked)
            self.assertTrue(json.loads(answer)["error"].endswith("."), answer)
        for area in (-1, "20", None):
            self.assertIn("has to be a number", self.loads(server, good["text"], area=area)["problem"])
        body = json.dumps(good).encode()
        self.assertEqual(server.ask("POST", "api/loads", body, {"Content-Type": "application/json"})[0], 403)
        self.assertEqual(server.ask("POST", "/api/loads", body, {"Origin": server.origin, "Content-Type": "application/json"})[0], 404)
        rows = "".join(f"{k / 1000:.3f},{k}\n" for k in range(400_000))  # some minutes at a kHz: 5 MB
        self.assertIn("have no times", self.loads(server, "time [s],force [N]\n" + rows)["problem"])
        try:
            self.assertEqual(server.post("api/loads", {**good, "text": good["text"] + " " * (16 << 20)})[0], 413)
        except OSError:
            pass  # the connection was closed before all was sent
        self.assertEqual(self.loads(server, good["text"])["values"], [2, 3])
        unopened = self.view("--no-browser")
        self.assertEqual(unopened.post("api/loads", good)[0], 400)

    def test_16_bit_images_arrive_whole(self):
        names = self.sequence(SHIFTS, dtype=np.uint16)
        server = self.view(*names, "--no-browser")
        status, headers, content = server.ask("GET", "api/image/reference")
        self.assertEqual((headers["X-Width"], headers["X-Height"], headers["X-Type"]), ("140", "120", "u16"))
        expected = np.round(dic_program.speckle(120, 140) * 257).astype(np.uint16)
        np.testing.assert_array_equal(np.frombuffer(content, np.uint16).reshape(120, 140), expected)

    def test_opens_the_browser_without_a_shell(self):
        tools = self.folder / "tools"
        tools.mkdir()
        script = tools / "xdg-open"
        script.write_text('#!/bin/sh\nprintf "%s\\n" "$#" "$1" > "$OPENED"\n')
        script.chmod(0o755)
        env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "OPENED": str(self.folder / "opened")}
        server = self.view(*self.sequence(SHIFTS), env=env)
        for _ in range(100):
            if (self.folder / "opened").exists() and (self.folder / "opened").read_text().count("\n") == 2:
                break
            time.sleep(0.05)
        self.assertEqual((self.folder / "opened").read_text(), f"1\n{server.address}\n")

    def test_wrong_use(self):
        self.refuse(1, ["nothing"], "view", "nothing_*.png", "--no-browser")

    # Report -----------------------------------------------------------------------------------------

    def test_report_is_one_file_that_asks_for_nothing(self):
        self.succeed("track", *self.sequence(SHIFTS), "--subset", "21", "--step", "10", "--no-pictures", "--scale", "0.5")
        done = self.succeed("report", "dic_out", "--camera-text", "</script><script>alert(1)</script>", "--title", "A & <b>")
        self.assertIn("report.html", done.stdout)
        html = (self.folder / "report.html").read_text()
        self.assertIn("default-src 'none'", html)
        self.assertNotIn("</script><script>alert", html)
        self.assertNotIn("<b>", html.split("report-data")[1].split("</script>")[0])
        for mark in ('src="http', 'href="http', "url(http", "@import"):
            self.assertNotIn(mark, html)
        self.assertIn('id="field-u-1"', html)
        self.assertIn('id="image-reference"', html)
        self.refuse(1, ["report.html", "--force"], "report", "dic_out")
        self.succeed("report", "dic_out", "-o", "one.html", "--frames", "2", "--no-image")
        html = (self.folder / "one.html").read_text()
        self.assertIn('id="field-u-0"', html)
        self.assertNotIn('id="field-u-1"', html)
        self.assertNotIn('id="image-reference"', html)
        self.refuse(2, ["3", "1 to 2"], "report", "dic_out", "-o", "x.html", "--frames", "3")
        self.refuse(1, ["nothing", "no such file"], "report", "nothing")

    def test_report_says_what_the_camera_file_corrects(self):
        frames = self.sequence(SHIFTS[:2])
        height, width = cv2.imread(str(self.folder / frames[0])).shape[:2]
        camera = {"dic_camera": 1, "image_width": width, "image_height": height}
        lens = {"fx": 800, "fy": 810, "cx": width / 2, "cy": height / 2, "k1": -0.1}
        plane = {"px_from_mm": [[10, 0, 60], [0, 10, 60], [0, 0, 1]]}
        for parts, words in (({"lens": lens}, "distortion, "), ({"plane": plane}, "perspective"),
                             ({"lens": lens, "plane": plane}, "perspective and distortion, ")):
            (self.folder / "camera.json").write_text(json.dumps(camera | parts))
            self.succeed("track", *frames, "--camera", "camera.json", "--subset", "21", "--step", "10", "--no-pictures", "--force")
            self.succeed("report", "dic_out", "-o", "camera.html", "--force")
            html = (self.folder / "camera.html").read_text()
            data = json.loads(re.search(r'<script[^>]*id="report-data"[^>]*>(.*?)</script>', html, re.DOTALL)[1])
            practice = dict(data["result"]["practice"])
            self.assertTrue(practice["lens correction"].startswith(words), practice)
            self.assertEqual("k1 -0.1" in practice["lens correction"], "lens" in parts)
            self.assertEqual(practice["outliers marked"], "yes")


if __name__ == "__main__":
    main()
