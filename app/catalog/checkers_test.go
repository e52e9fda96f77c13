package catalog

import (
	"context"
	"errors"
	"testing"
)

// TestCheckers: a tenant has one place of two, and who gives up leaves none behind.
func TestCheckers(t *testing.T) {
	t.Parallel()
	c := newCheckers()
	first, err := c.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.enter(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second one of a tenant: %v", err)
	}
	second, err := c.enter(t.Context(), "b")
	if err != nil {
		t.Fatalf("another tenant: %v", err)
	}
	if _, err := c.enter(gone, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("a third one: %v", err)
	}
	first()
	third, err := c.enter(t.Context(), "c")
	if err != nil {
		t.Fatalf("after one has left: %v", err)
	}
	second()
	third()
	again, err := c.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	again()
}
