package web_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/testkit"
)

// press opens a page, fills the form around one of its buttons with pairs of names and
// values, and presses it, as a browser without scripts does. A name given twice, or for
// boxes to tick, takes all its values.
func (w *clusterWorld) press(user loom.UserID, at, label string, pairs ...string) clusterAnswer {
	w.t.Helper()
	return w.pressOn(user, w.get(user, at).is(http.StatusOK), at, label, pairs...)
}

// pressOn is press on an answer that is there.
func (w *clusterWorld) pressOn(user loom.UserID, page clusterAnswer, at, label string, pairs ...string) clusterAnswer {
	w.t.Helper()
	var labels []string
	for _, b := range testkit.Buttons(w.t, page.Body) {
		labels = append(labels, b.Label)
		if b.Label != label {
			continue
		}
		given := map[string]bool{}
		for i := 0; i+1 < len(pairs); i += 2 {
			if !given[pairs[i]] {
				b.Values.Del(pairs[i])
			}
			given[pairs[i]] = true
			b.Values.Add(pairs[i], pairs[i+1])
		}
		to := b.Action
		if to == "" {
			to = at
		}
		if b.Method == http.MethodGet {
			path, _, _ := strings.Cut(to, "?")
			return w.get(user, path+"?"+b.Values.Encode())
		}
		return w.post(user, to, b.Values)
	}
	slices.Sort(labels)
	w.t.Fatalf("%s has no button %q, but %q", at, label, slices.Compact(labels))
	return page
}

var mainPart = regexp.MustCompile(`(?s)<main.*</main>`)

func (a clusterAnswer) main() string {
	if part := mainPart.FindString(a.Body); part != "" {
		return part
	}
	return a.Body
}
