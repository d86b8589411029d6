"""`dic view` under test: started without a browser and queried by raw HTTP."""

import http.client
import json
import subprocess
from urllib.parse import urlsplit


class ViewServer:
    """A server that runs until `stop`; address, token and port are those that it printed."""

    def __init__(self, program, folder, *arguments, env=None):
        self.process = subprocess.Popen([program, "view", *map(str, arguments)], cwd=folder, text=True, env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1])
        self.address = line.split()[-1]
        parts = urlsplit(self.address)
        self.port, self.token = parts.port, parts.path.strip("/")
        self.origin = f"http://127.0.0.1:{self.port}"

    def stop(self):
        """The exit code."""
        self.process.terminate()
        self.process.communicate(timeout=60)
        return self.process.returncode

    def ask(self, method, path, body=None, headers=None, host=None):
        """(status, headers, bytes) of exactly this request; a path without a leading "/" is appended to the token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path if path.startswith("/") else f"/{self.token}/{path}", skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    def get_json(self, path):
        status, _, content = self.ask("GET", path)
        assert status == 200, content
        return json.loads(content)

    def post(self, path, content):
        """(status, answer) of a request as the page itself would send it."""
        status, _, answer = self.ask("POST", path, json.dumps(content).encode(),
                                     {"Origin": self.origin, "Content-Type": "application/json"})
        return status, answer
