package store

import (
	"testing"
	"time"
	"unicode/utf8"

	"loom/app/loom"
)

// FuzzCursorPlace gives a list the keys of tampered cursors: what passes can be
// sent to the database.
func FuzzCursorPlace(f *testing.F) {
	f.Add("2026-01-02T03:04:05.678901Z", "7", "timestamptz", "bigint")
	f.Add("0000-01-01T00:00:00Z", "x", "timestamptz", "text")
	f.Add("9999-12-31T23:59:59-23:59", "9223372036854775808", "timestamptz", "bigint")
	f.Add("\x00", "\xff", "text", "text")
	f.Fuzz(func(t *testing.T, key, id, kind, idKind string) {
		k := keyset{idKind: idKind}
		gotKey, gotID, ok := k.place(&loom.Cursor{Keys: []string{key, id, "print"}}, kind, "print")
		if _, _, other := k.place(&loom.Cursor{Keys: []string{key, id, "another"}}, kind, "print"); other {
			t.Error("a cursor of another filter passed")
		}
		if !ok {
			return
		}
		if at, isTime := gotKey.(time.Time); (kind == "timestamptz") != isTime || isTime && (at.Year() < 1 || at.Year() > 9999) {
			t.Errorf("the key %q became %v", key, gotKey)
		}
		if _, isNumber := gotID.(int64); (idKind == "bigint") != isNumber {
			t.Errorf("the id %q became %v", id, gotID)
		}
		if !utf8.ValidString(key + id) {
			t.Errorf("%q or %q passed", key, id)
		}
	})
}
