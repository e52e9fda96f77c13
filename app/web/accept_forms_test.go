package web_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"loom/app/web"
	"loom/views/route"
)

// formsSent are the routes for forms that any test of the package has sent one to,
// and by which something was done.
var formsSent = struct {
	sync.Mutex
	mux  *http.ServeMux
	done map[string]bool
}{done: map[string]bool{}}

// noForms are routes by which nothing can be done here, with the reason.
var noForms = map[string]string{
	"POST /admin/starter":              "loads what only a whole instance has",
	"POST /csp-reports":                "browsers send it, no form does",
	"POST /system/orphans/{id}/remove": "waits for a provisioner: TestLeftoversByForms sees it refused, package processes what it does",
}

// countForms notes which routes forms are sent to.
func countForms(next http.Handler) http.Handler {
	formsSent.Lock()
	defer formsSent.Unlock()
	if formsSent.mux == nil {
		formsSent.mux = http.NewServeMux()
		for _, pattern := range web.Patterns() {
			formsSent.mux.Handle(pattern, http.NotFoundHandler())
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		_, pattern := formsSent.mux.Handler(r)
		seen := &statusSeen{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		if seen.status < http.StatusBadRequest {
			formsSent.Lock()
			defer formsSent.Unlock()
			formsSent.done[pattern] = true
		}
	})
}

// statusSeen keeps the status of an answer.
type statusSeen struct {
	http.ResponseWriter
	status int
}

func (s *statusSeen) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap gives what is behind.
func (s *statusSeen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// formsNotSent lists the forms that no test of the package has sent with success.
func formsNotSent() []string {
	formsSent.Lock()
	defer formsSent.Unlock()
	var lacks []string
	for _, pattern := range web.Patterns() {
		if pattern == "POST "+route.AdminFix() && os.Getenv("LOOM_TEST_CATALOG") == "none" {
			continue // its tests need an outside catalog
		}
		if strings.HasPrefix(pattern, "POST ") && !formsSent.done[pattern] && noForms[pattern] == "" {
			lacks = append(lacks, "no test sends a form to "+pattern+" by which something is done")
		}
	}
	slices.Sort(lacks)
	return lacks
}
