"""A web application that counts visits in Redis, with the standard library only.

Usage: counter-app.py PORT REDIS_HOST REDIS_PORT TITLE    serves pages
       counter-app.py initialize REDIS_HOST REDIS_PORT    sets a new counter to 0, leaves an old one
"""
import html
import http.server
import socket
import sys

REDIS_HOST, REDIS_PORT = sys.argv[2], int(sys.argv[3])
TITLE = sys.argv[4] if len(sys.argv) > 4 else ""


def redis(*words):
    """Send one command and give the first line of the answer, without its mark."""
    request = b"*%d\r\n" % len(words)
    for word in words:
        data = word.encode()
        request += b"$%d\r\n%s\r\n" % (len(data), data)
    with socket.create_connection((REDIS_HOST, REDIS_PORT), timeout=2) as connection:
        connection.sendall(request)
        line = connection.makefile("rb").readline().strip()
    if line[:1] == b"-":
        raise OSError(line[1:].decode())
    return line[1:].decode()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers / with the count and /healthz with whether Redis answers."""

    def do_GET(self):
        try:
            if self.path == "/healthz":
                body, kind = redis("PING"), "text/plain"
            else:
                count = redis("INCR", "loom:visits")
                body = (
                    '<!doctype html><html lang="en"><meta charset="utf-8"><title>%s</title>'
                    "<style>body{font:18px/1.6 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}"
                    "strong{font-size:3em}</style><h1>%s</h1><p><strong>%s</strong></p><p>counted by <code>%s</code></p>"
                ) % (html.escape(TITLE), html.escape(TITLE), html.escape(count), html.escape(socket.gethostname()))
                kind = "text/html; charset=utf-8"
            status = 200
        except OSError as error:
            body, kind, status = "Redis does not answer: %s\n" % error, "text/plain", 503
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Keep quiet: the front writes the access log."""


if sys.argv[1] == "initialize":
    print("counter set to 0" if redis("SETNX", "loom:visits", "0") == "1" else "counter kept")
else:
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
