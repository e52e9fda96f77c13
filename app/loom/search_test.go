package loom_test

import (
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
)

var searchFields = []string{"status", "template", "label", "owner"}

func TestParseSearch(t *testing.T) {
	t.Parallel()
	type term = loom.SearchTerm
	for text, want := range map[string]struct {
		words []string
		terms []term
	}{
		"":                       {},
		"  web   db ":            {words: []string{"web", "db"}},
		"status:failed web":      {words: []string{"web"}, terms: []term{{Field: "status", Values: []string{"failed"}}}},
		"-status:a,b":            {terms: []term{{Field: "status", Values: []string{"a", "b"}, Not: true}}},
		"STATUS:x":               {terms: []term{{Field: "status", Values: []string{"x"}}}},
		"label:team=web":         {terms: []term{{Field: "label", Values: []string{"team=web"}}}},
		`label:team="web shop"`:  {terms: []term{{Field: "label", Values: []string{"team=web shop"}}}},
		`"two words" x`:          {words: []string{"two words", "x"}},
		`"status:failed`:         {words: []string{"status:failed"}},
		"fe80::1 10.0.0.1":       {words: []string{"fe80::1", "10.0.0.1"}},
		"dead:beef::1":           {words: []string{"dead:beef::1"}},
		"http://x.example a::b":  {words: []string{"http://x.example", "a::b"}},
		"10:30 -web":             {words: []string{"10:30", "-web"}},
		"owner:ana,,  template:": {},
	} {
		words, terms, err := loom.ParseSearch(text, searchFields...)
		if text == "owner:ana,,  template:" {
			if err == nil || !strings.Contains(err.Error(), "needs a value") {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(words, want.words) || !reflect.DeepEqual(terms, want.terms) {
			t.Errorf("%q: %q, %+v, %v", text, words, terms, err)
		}
	}
	_, _, err := loom.ParseSearch("stats:x", searchFields...)
	e := loom.AsError(err)
	if e.Kind != loom.Invalid || len(e.Fields) != 1 || e.Fields[0].Field != "q" ||
		!strings.Contains(e.Fields[0].Message, "“status:”") || !strings.Contains(e.Fields[0].Message, "status, template, label, owner") {
		t.Errorf("an unknown field: %+v", e)
	}
}

func FuzzParseSearch(f *testing.F) {
	f.Add(`status:x "a b" -label:k=v ::1`)
	f.Fuzz(func(t *testing.T, text string) {
		words, terms, err := loom.ParseSearch(text, searchFields...)
		if err != nil && loom.AsError(err).Kind != loom.Invalid {
			t.Fatal(err)
		}
		for _, w := range words {
			if w == "" || strings.Contains(w, `"`) {
				t.Fatalf("word %q of %q", w, text)
			}
		}
		for _, term := range terms {
			if len(term.Values) == 0 {
				t.Fatalf("a term without value in %q", text)
			}
		}
	})
}
