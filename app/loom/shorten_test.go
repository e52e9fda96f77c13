package loom_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"loom/app/loom"
)

// TestRecorded: what is too long is cut between characters, and says so.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "clusters/1", strings.Repeat("x", loom.MaxRecorded)} {
		if got := loom.Recorded(text); got != text {
			t.Errorf("of %q there is %q", text, got)
		}
	}
	for _, letter := range []string{"x", "ü", "€", "😀"} {
		got := loom.Recorded(strings.Repeat(letter, 60_000))
		if len(got) > loom.MaxRecorded || len(got) < loom.MaxRecorded-4 || !utf8.ValidString(got) || !strings.HasSuffix(got, letter+"…") {
			t.Errorf("of many %s there are %d bytes: %q", letter, len(got), got)
		}
	}
}
