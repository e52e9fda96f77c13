package web_test

import (
	"net/http"
	"regexp"
	"testing"

	"loom/app/web"
)

// TestRoutesAreWhole looks at the table of routes: each names its verb, a handler, and samples
// that lead to it.
func TestRoutesAreWhole(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for _, rt := range web.Routes() {
		mux.Handle(rt.Pattern(), http.NotFoundHandler())
	}
	placeholder := regexp.MustCompile(`\{[a-z ]+\}`)
	for _, rt := range web.Routes() {
		if rt.Access == "" {
			t.Errorf("%s: no verb", rt.Pattern())
		}
		if rt.Handle == nil {
			t.Errorf("%s: no handler", rt.Pattern())
		}
		if len(rt.Samples) == 0 {
			t.Errorf("%s: no sample", rt.Pattern())
		}
		for _, sample := range rt.Samples {
			method := rt.Method
			if method == "" {
				method = http.MethodGet
			}
			r, err := http.NewRequest(method, placeholder.ReplaceAllString(sample, "x"), nil)
			if err != nil {
				t.Errorf("%s: %v", rt.Pattern(), err)
				continue
			}
			if _, pattern := mux.Handler(r); pattern != rt.Pattern() {
				t.Errorf("%s: the sample %s leads to %s", rt.Pattern(), sample, pattern)
			}
		}
	}
}
