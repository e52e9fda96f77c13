package store

import (
	"encoding/json"
	"maps"
	"testing"

	"loom/app/loom"
)

// FuzzDecodeTexts: what is read without a decoder is what a decoder reads.
func FuzzDecodeTexts(f *testing.F) {
	for _, text := range []string{`{}`, `{"a": "b"}`, `{"a": "b", "c": ""}`, `{"a":"b"}`, `{"a": "b\"c"}`, `{"a": "ü", "": "x"}`, `{"a": "b",}`, `{"a": 1}`, `{"a": null}`, `null`, ``, `{`, `{"a": "b"`, `{"a": "b"}}`, `{"a": "b", "a": "c"}`, "{\"a\": \"b\nc\"}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return // the database holds no such
		}
		var got map[string]loom.ServiceState
		var want map[string]loom.ServiceState
		err, wrong := decodeTexts([]byte(text), &got), decodeExact([]byte(text), &want)
		if (err == nil) != (wrong == nil) || err == nil && !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v; a decoder: %v, %v", text, got, err, want, wrong)
		}
	})
}
