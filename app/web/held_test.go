package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

// TestHeldBackFormsEndWithTheirSession: a form whose end comes after its session ended
// changes nothing: fields, files and archives alike.
func TestHeldBackFormsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.must(w.catalog.RegisterTypes(w.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file", Permissions: "755"}}}}))
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	const boundary = "x"
	part := func(name, file, text string) string {
		if file != "" {
			file = `; filename="` + file + `"`
		}
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"" + file + "\r\n\r\n" + text + "\r\n"
	}
	const end = "--" + boundary + "--\r\n"
	bundle := `{"services":[{"name":"late"}]}`
	for _, c := range []struct{ what, path, form, rest, kind string }{
		{"fields", "/admin/users", url.Values{"id": {"late"}, "role": {"admin"}, "password": {"quite-a-long-Pa55phrase"}}.Encode(), "&a=b", "application/x-www-form-urlencoded"},
		{"a file", "/admin/resources/save", part("plugin", "", "automatortypes/shell/scripts") + part("name", "", "late.sh") + part("file", "late.sh", "echo") + end, "\r\n", "multipart/form-data; boundary=" + boundary},
		{"a text", "/admin/resources/save", part("plugin", "", "automatortypes/shell/scripts") + part("name", "", "late.sh") + part("text", "", "echo") + end, "\r\n", "multipart/form-data; boundary=" + boundary},
		{"a bundle", "/admin/transfer/preview", part("paste", "", bundle) + end, "\r\n", "multipart/form-data; boundary=" + boundary},
		{"an archive", "/admin/transfer/resources/upload", part("archive", "late.tar", "echo") + end, "\r\n", "multipart/form-data; boundary=" + boundary},
	} {
		for _, chunked := range []bool{false, true} {
			_, cookie, _, err := w.accounts.SignIn(w.ctx, account.SignInInput{Tenant: "acme", User: "admin", Password: loom.NewSecret("correct horse battery admin"), Address: "127.0.0.1"})
			w.must(err)
			actor, _, err := w.accounts.ActorBySession(w.ctx, cookie, "")
			w.must(err)
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			w.must(err)
			conn.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a test that hangs fails
			length := fmt.Sprintf("Content-Length: %d", len(c.form)+len(c.rest))
			piece := func(text string) string { return text }
			if chunked {
				length = "Transfer-Encoding: chunked"
				piece = func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
			}
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: loom\r\nCookie: loom-dev=%s\r\nContent-Type: %s\r\nExpect: 100-continue\r\n%s\r\n\r\n", c.path, cookie.Reveal(), c.kind, length)
			w.must(err)
			read := bufio.NewReader(conn)
			if line, err := read.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
				t.Fatalf("%s: %s, %v", c.what, line, err)
			}
			_, err = read.ReadString('\n')
			w.must(err)
			fmt.Fprint(conn, piece(c.form)) //nolint:errcheck // the answer tells
			_, err = w.accounts.SignOut(w.ctx, actor, cookie)
			w.must(err)
			last := piece(c.rest)
			if chunked {
				last += piece("")
			}
			fmt.Fprint(conn, last) //nolint:errcheck // the answer tells
			answer, err := http.ReadResponse(read, nil)
			w.must(err)
			conn.Close()
			if answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s", c.what, answer.Status)
			}
		}
	}
	var late int
	w.must(w.db.GetContext(w.ctx, &late, `SELECT (SELECT count(*) FROM users WHERE id = 'late') + (SELECT count(*) FROM resources) + (SELECT count(*) FROM secrets WHERE entity LIKE 'import%')`))
	if late != 0 {
		t.Errorf("%d things were made", late)
	}
}
