package page

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"loom/views/route"
)

// TestReportsAboutTheContentPolicy are small and few, and only known fields are logged:
// anybody may send them.
func TestReportsAboutTheContentPolicy(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Now()
	s := &Shared{Deps: Deps{Log: slog.New(slog.NewTextHandler(&log, nil)), Version: "test"}, Now: func() time.Time { return now }}
	h := s.Handler(Route{Access: Open, Handle: Anybody(s.cspReport)})
	sendFrom := func(address, body string) (status int, logged string) {
		log.Reset()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, route.CSPReports(), strings.NewReader(body))
		r.RemoteAddr = address + ":7"
		h.ServeHTTP(w, r)
		return w.Code, log.String()
	}
	send := func(body string) (status int, logged string) { return sendFrom("192.0.2.1", body) }
	const modern = `[{"type":"csp-violation","age":1,"url":"u","user_agent":"forged","body":{"documentURL":"https://loom/a","blockedURL":"inline","effectiveDirective":"script-src-elem",
		"disposition":"enforce","sourceFile":"x.js","lineNumber":7,"originalPolicy":"secret policy","sample":"alert(1)"}},{"type":"deprecation","body":{"documentURL":"other"}}]`
	for what, c := range map[string]struct {
		body   string
		status int
		says   []string
	}{
		"modern":     {modern, 204, []string{"document=https://loom/a", "blocked=inline", "directive=script-src-elem", "source=x.js", "line=7"}},
		"older":      {`{"csp-report":{"document-uri":"https://loom/b","blocked-uri":"data","effective-directive":"img-src","line-number":3,"referrer":"forged"}}`, 204, []string{"document=https://loom/b", "blocked=data", "directive=img-src", "line=3"}},
		"forged":     {`{"csp-report":{"document-uri":"a\nlevel=ERROR msg=forged\u001b[2J"}}`, 204, []string{`document="a\nlevel=ERROR msg=forged\x1b[2J"`}},
		"long":       {`{"csp-report":{"document-uri":"` + strings.Repeat("é", 900) + `"}}`, 204, []string{"document=" + strings.Repeat("é", 200) + "…"}},
		"large":      {`{"csp-report":{"document-uri":"` + strings.Repeat("a", 2048) + `"}}`, 422, nil},
		"deep":       {strings.Repeat("[", 2000), 204, nil},
		"no JSON":    {"level=ERROR msg=forged", 204, nil},
		"other JSON": {`{"a":"forged"}`, 204, nil},
		"wrong type": {`{"csp-report":{"document-uri":{"forged":1}}}`, 204, nil},
	} {
		s.reports = reports{}
		status, logged := send(c.body)
		if status != c.status || strings.Count(logged, "\n") != min(len(c.says), 1) {
			t.Errorf("%s: %d, logged %q", what, status, logged)
		}
		for _, says := range c.says {
			if !strings.Contains(logged, says) {
				t.Errorf("%s: %q does not say %s", what, logged, says)
			}
		}
		if what != "forged" && strings.Contains(logged, "forged") || strings.Contains(logged, "secret policy") || strings.Contains(logged, "alert") || strings.Contains(logged, "\x1b") {
			t.Errorf("%s: %q", what, logged)
		}
	}

	s.reports = reports{}
	lines := 0
	for range 3 {
		for range 10 {
			_, logged := send(modern)
			lines += strings.Count(logged, "\n")
		}
		now = now.Add(10 * time.Second)
	}
	if lines != reportsPerPlace {
		t.Errorf("%d lines of one place within a minute", lines)
	}
	for i := range 9 { // those of others are logged all the same
		_, logged := sendFrom(fmt.Sprint("192.0.2.", 2+i), modern)
		lines += strings.Count(logged, "\n")
	}
	if lines != reportsPerMinute {
		t.Errorf("%d lines within a minute", lines)
	}
	now = now.Add(time.Minute)
	if _, logged := send(modern); !strings.Contains(logged, "left_out=2 ") && !strings.Contains(logged, "left_out=2\n") {
		t.Errorf("a minute later: %q", logged)
	}
	many := "[" + strings.Repeat(`{"type":"csp-violation","body":{}},`, 50) + `{"type":"csp-violation","body":{}}]`
	if _, logged := send(many); strings.Count(logged, "\n") != reportsPerPlace-1 {
		t.Errorf("of %s in one request %d were logged", fmt.Sprint(51), strings.Count(logged, "\n"))
	}
}
