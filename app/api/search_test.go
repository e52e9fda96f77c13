package api

import (
	"slices"
	"strings"
	"testing"
)

// TestSearchesAreBounded: no list takes a search of more than ten words, since each
// would be a look at every row.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lists := 0
	for _, rt := range w.api.routes() {
		if !slices.ContainsFunc(rt.query, func(p param) bool { return p.name == "q" }) {
			continue
		}
		lists++
		token := w.admin
		if slices.ContainsFunc(superPaths, func(p string) bool { return strings.HasPrefix(rt.path, p) }) {
			token = w.super
		}
		path := strings.Replace(fill(rt.path, "00000001"), "users/00000001", "users/admin", 1) + "?q="
		w.call(token, rt.method, path+strings.Repeat("a+", 10), "").want(200)
		w.call(token, rt.method, path+strings.Repeat("a+", 10)+"a", "").fails(400, "q", "at most 10 words")
	}
	if lists < 10 {
		t.Errorf("only %d lists are searched", lists)
	}
}
