package loom_test

import (
	"testing"

	"loom/app/loom"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	a, b, c := loom.IdempotencyKey("n", 1), loom.IdempotencyKey("n", 2), loom.IdempotencyKey("m", 1)
	if a == b || a == c || a != loom.IdempotencyKey("n", 1) {
		t.Error("a key belongs to one machine")
	}
	if len(a) != 36 || a[14] != '5' {
		t.Errorf("%q is no version 5 UUID", a)
	}
	// Machines that exist carry keys of earlier releases: the form never changes.
	if key := loom.IdempotencyKey("00000000-0000-4000-8000-000000000001", 1); key != "37799215-f832-5661-8dd0-6526e49d5768" {
		t.Errorf("the key is %s", key)
	}
}
