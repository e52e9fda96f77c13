package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// clusterAnswer is what a request came to.
type clusterAnswer struct {
	t      testing.TB
	Code   int
	Body   string
	Header http.Header
}

// is demands a status and texts in the answer.
func (a clusterAnswer) is(code int, texts ...string) clusterAnswer {
	a.t.Helper()
	if a.Code != code {
		a.t.Fatalf("status %d, want %d: %.1500s", a.Code, code, a.Body)
	}
	return a.has(texts...)
}

func (a clusterAnswer) has(texts ...string) clusterAnswer {
	a.t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.Body, text) {
			a.t.Errorf("the answer lacks %q:\n%.6000s", text, a.main())
		}
	}
	return a
}

func (a clusterAnswer) lacks(texts ...string) clusterAnswer {
	a.t.Helper()
	for _, text := range texts {
		if strings.Contains(a.Body, text) {
			a.t.Errorf("the answer holds %q", text)
		}
	}
	return a
}

// goesTo demands a redirect and gives its target.
func (a clusterAnswer) goesTo(pattern string) string {
	a.t.Helper()
	to := a.Header.Get("Location")
	if a.Code != http.StatusSeeOther || !regexp.MustCompile("^"+pattern+"$").MatchString(to) {
		a.t.Fatalf("status %d to %q, want 303 to %s: %.1500s", a.Code, to, pattern, a.main())
	}
	return to
}

var hashField = regexp.MustCompile(`name="hash" value="([0-9a-f]+)"`)

// hash is that of the preview on the page.
func (a clusterAnswer) hash() string {
	a.t.Helper()
	found := hashField.FindStringSubmatch(a.Body)
	if found == nil {
		a.t.Fatalf("no hash on the page: %.3000s", a.main())
	}
	return found[1]
}
