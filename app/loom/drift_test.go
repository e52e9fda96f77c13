package loom

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDriftOfFiles: files are compared with the first sums since the service was configured.
func TestDriftOfFiles(t *testing.T) {
	t.Parallel()
	before := []Drift{{Kind: DriftFile, Service: "nginx", File: "/a", Was: "1", Now: "2"}, {Kind: DriftFile, Service: "other", File: "/a", Was: "1", Now: "9"}}
	for name, c := range map[string]struct {
		sums, seen FileSums
		fresh      bool
		after      FileSums
		drift      []string
	}{
		"seen first":             {nil, FileSums{"/a": "1", "/b": ""}, false, FileSums{"/a": "1", "/b": ""}, nil},
		"as before":              {FileSums{"/a": "1", "/b": ""}, FileSums{"/a": "1", "/b": ""}, false, FileSums{"/a": "1", "/b": ""}, nil},
		"changed":                {FileSums{"/a": "1"}, FileSums{"/a": "2"}, false, FileSums{"/a": "1"}, []string{"/a was changed."}},
		"removed":                {FileSums{"/a": "1"}, FileSums{"/a": ""}, false, FileSums{"/a": "1"}, []string{"/a was removed."}},
		"added":                  {FileSums{"/a": ""}, FileSums{"/a": "2"}, false, FileSums{"/a": ""}, []string{"/a was added."}},
		"configured since":       {FileSums{"/a": "1"}, FileSums{"/a": "2"}, true, FileSums{"/a": "2"}, nil},
		"another path":           {FileSums{"/a": "1"}, FileSums{"/b": "2"}, false, FileSums{"/b": "2"}, nil},
		"one more path":          {FileSums{"/a": "1"}, FileSums{"/a": "2", "/b": "3"}, false, FileSums{"/a": "1", "/b": "3"}, []string{"/a was changed."}},
		"cannot be read":         {FileSums{"/a": "1", "/b": "1"}, FileSums{"/a": "?", "/b": "?"}, false, FileSums{"/a": "1", "/b": "1"}, []string{"/a was changed."}},
		"never could be read":    {nil, FileSums{"/a": "?"}, false, FileSums{}, nil},
		"configured, unreadable": {FileSums{"/a": "1"}, FileSums{"/a": "?"}, true, FileSums{}, nil},
		"several": {FileSums{"/c": "1", "/b": "1", "/a": "1"}, FileSums{"/a": "2", "/b": "1", "/c": "3"}, false, FileSums{"/a": "1", "/b": "1", "/c": "1"},
			[]string{"/a was changed.", "/c was changed."}},
	} {
		after := c.sums.After(c.seen, c.fresh)
		if !reflect.DeepEqual(after, c.after) {
			t.Errorf("%s: compared with %v from now on, want %v", name, after, c.after)
		}
		var got []string
		for _, d := range after.Drift("nginx", c.seen, before) {
			if d.Service != "nginx" || d.Kind != DriftFile {
				t.Errorf("%s: %+v", name, d)
			}
			got = append(got, d.Text())
		}
		if !slices.Equal(got, c.drift) {
			t.Errorf("%s: %q, want %q", name, got, c.drift)
		}
	}
}

// TestDriftOfAnyFiles: however files change and whenever the service is configured, those
// have drifted that are not as at the first look since, and nothing else has.
func TestDriftOfAnyFiles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		files, left := FileSums{}, FileSums{}
		var sums FileSums
		for look := range 40 {
			configured := look > 0 && r.IntN(8) == 0
			for i := range 3 {
				path := fmt.Sprint("/f", i)
				if look == 0 || r.IntN(6) == 0 {
					files[path] = []string{"", "a", "b", "c"}[r.IntN(4)]
				}
				if look == 0 || configured {
					left[path] = files[path]
				}
			}
			sums = sums.After(files, configured)
			drifted := map[string]bool{}
			for _, d := range sums.Drift("s", files, nil) {
				drifted[d.File] = true
				if d.Was != left[d.File] || d.Now != files[d.File] {
					t.Fatalf("seed %d, look %d: %+v; left %v, now %v", seed, look, d, left, files)
				}
			}
			for path := range files {
				if drifted[path] != (files[path] != left[path]) {
					t.Fatalf("seed %d, look %d: %s drifted %t; left %v, now %v", seed, look, path, drifted[path], left, files)
				}
			}
		}
	}
}

// TestDriftOfMachines: what a provider lists is compared with its first list, as far as both
// say something.
func TestDriftOfMachines(t *testing.T) {
	t.Parallel()
	first := MachineFacts{"small", "debian-12", []string{"10.0.0.1", "192.0.2.1"}}
	for name, c := range map[string]struct {
		last MachineFacts
		want []string
	}{
		"as before":       {first, nil},
		"nothing said":    {MachineFacts{}, nil},
		"another size":    {MachineFacts{Size: "large"}, []string{"Its size is large, it was small."}},
		"another image":   {MachineFacts{Image: "debian-13"}, []string{"Its image is debian-13, it was debian-12."}},
		"one address":     {MachineFacts{Addresses: []string{"10.0.0.1"}}, []string{"Its addresses are 10.0.0.1, they were 10.0.0.1, 192.0.2.1."}},
		"everything else": {MachineFacts{"l", "d", []string{"::1"}}, []string{"Its size is l, it was small.", "Its image is d, it was debian-12.", "Its addresses are ::1, they were 10.0.0.1, 192.0.2.1."}},
	} {
		var got []string
		for _, d := range (ListedMachine{first, c.last}).Drift() {
			got = append(got, d.Text())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if drift := (ListedMachine{Last: first}).Drift(); drift != nil {
		t.Errorf("of a first list that says nothing: %v", drift)
	}
	running := TaggedMachine{State: StateRunning, Flavor: "f", Addresses: []string{"b", "a", "b"}}
	if facts, known := running.Facts(); !known || !reflect.DeepEqual(facts, MachineFacts{"f", "", []string{"a", "b"}}) {
		t.Errorf("a machine that runs: %+v, %t", facts, known)
	}
	for _, m := range []TaggedMachine{{State: StateStopped, Flavor: "f"}, {State: StateMissing}, {State: StateRunning}, {Flavor: "f"}} {
		if facts, known := m.Facts(); known {
			t.Errorf("%+v is compared: %+v", m, facts)
		}
	}
}

func TestDriftSince(t *testing.T) {
	t.Parallel()
	now := time.Now()
	earlier := now.Add(-time.Hour)
	got := DriftSince([]Drift{{Kind: DriftFile, Service: "s", File: "/a", Now: "3"}, {Kind: DriftFile, Service: "s", File: "/b"}, {Kind: DriftReboot, Since: earlier}},
		[]Drift{{Kind: DriftFile, Service: "s", File: "/a", Now: "2", Since: earlier}, {Kind: DriftFile, Service: "other", File: "/b", Since: earlier}}, now)
	for i, want := range []time.Time{earlier, now, earlier} {
		if !got[i].Since.Equal(want) {
			t.Errorf("%+v, want since %s", got[i], want)
		}
	}
	if got[0].Now != "3" {
		t.Errorf("what it is now: %+v", got[0])
	}
}

// TestDriftTroubles: a service with changed files is one incident, the machine another one,
// whatever state the node is in.
func TestDriftTroubles(t *testing.T) {
	t.Parallel()
	file := func(service, path string) Drift {
		return Drift{Kind: DriftFile, Service: service, File: path, Was: "1", Now: "2"}
	}
	drift := []Drift{file("nginx", "/a"), file("nginx", "/b"), file("nginx", "/c"), file("nginx", "/d"), file("nginx", "/e"), file("app", "/x"), {Kind: DriftReboot}}
	want := []Trouble{{IncidentDrift, "", "Rebooted, not by Loom."}, {IncidentDrift, "app", "/x was changed."},
		{IncidentDrift, "nginx", "/a was changed. /b was changed. /c was changed. 2 more."}}
	for status, others := range map[HealthStatus]int{HealthHealthy: 0, HealthUnreachable: 1, HealthStopped: 1, HealthGone: 1, HealthFailing: 1} {
		h := NodeHealth{Status: status, Refused: "no", Drift: drift}
		troubles, known := h.Troubles()
		if !known || len(troubles) != others+3 || !slices.Equal(troubles[others:], want) {
			t.Errorf("%s: %+v", status, troubles)
		}
	}
	for status, known := range map[HealthStatus]bool{HealthUnknown: false, HealthChanging: false, HealthOff: true} {
		h := NodeHealth{Status: status, Drift: drift}
		if troubles, told := h.Troubles(); told != known || len(troubles) > 0 {
			t.Errorf("%s: %+v, %t", status, troubles, told)
		}
	}
	long := NodeHealth{Status: HealthHealthy, Drift: []Drift{file("s", "/"+strings.Repeat("ä", 1000))}}
	if troubles, _ := long.Troubles(); len([]rune(troubles[0].Message)) > maxDriftText+1 {
		t.Errorf("a message of %d bytes", len(troubles[0].Message))
	}
}
