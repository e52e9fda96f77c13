package diskspace

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Reserve{
		"10%,5g": {10, 5 << 30}, "5g, 10 %": {10, 5 << 30}, "0": {}, "2.5%": {Percent: 2.5}, "100m": {Bytes: 100 << 20}, "1024": {Bytes: 1024},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "g", "10%,", "-1g", "100%", "0%", "NaN%", "9999999t", "5 gigabytes"} {
		if got, err := Parse(text); !errors.Is(err, loom.Invalid) || !strings.Contains(loom.AsError(err).Message, Option) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "not", "yet")
	free, err := (Reserve{Percent: 10, Bytes: 1 << 20}).Look(missing)
	if err != nil || free.Bytes <= 0 || free.Kept != 1<<20 {
		t.Fatalf("%+v, %v", free, err)
	}
	if half, err := (Reserve{Percent: 50}).Look(missing); err != nil || half.Kept <= 1<<20 {
		t.Errorf("half of the disk: %+v, %v", half, err)
	}
	if err := (Reserve{Bytes: 1}).Check(missing, "This is not made", 0); err != nil {
		t.Error(err)
	}
	err = (Reserve{Bytes: 1 << 20}).Check(missing, "This is not made", 1<<60)
	if !errors.Is(err, loom.Exhausted) || !strings.HasPrefix(loom.AsError(err).Message, "This is not made: the disk of this host has ") || !strings.Contains(loom.AsError(err).Message, "1.0 MB of it stay free") {
		t.Errorf("%v", err)
	}
	if err := (Reserve{}).Check(missing, "This is not made", 0); err != nil {
		t.Errorf("without a reserve: %v", err)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{5 << 40: "5.0 TB", 1536 << 20: "1.5 GB", 3 << 20: "3.0 MB", 2048: "2 kB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
