package simcloud

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
)

var ctx = context.Background()

func want(node, key string, token bool) Want {
	return Want{Machine: Machine{Node: loom.NodeID(node), Key: key}, Token: token}
}

// clouds are the ways in which a cloud is reached; each opens one more view of
// the same cloud.
func clouds(t *testing.T) map[string]func() Cloud {
	memory := NewBooks()
	served := httptest.NewServer(Handler(NewBooks()))
	t.Cleanup(served.Close)
	path := filepath.Join(t.TempDir(), "books")
	return map[string]func() Cloud{
		"memory": func() Cloud { return memory },
		"served": func() Cloud { return Dial(served.URL) },
		"file": func() Cloud {
			l, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			return l
		},
	}
}

func TestCloud(t *testing.T) {
	t.Parallel()
	for name, open := range clouds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := open(), open()
			a, err := first.Create(ctx, want("n1", "k1", true))
			if err != nil || a.ID != "mock-n1" {
				t.Fatalf("%+v, %v", a, err)
			}
			again, err := second.Create(ctx, want("n1", "k1", true))
			if err != nil || again.ID != a.ID || !again.Made.Equal(a.Made) {
				t.Errorf("the same token made %+v, %v", again, err)
			}
			b, err := second.Create(ctx, want("n1", "k1", false))
			if err != nil || b.ID != "mock-n1-2" {
				t.Errorf("without a token: %+v, %v", b, err)
			}
			if found, err := first.Find(ctx, Query{Key: "k1"}); err != nil || len(found) != 2 || found[0].ID != a.ID {
				t.Errorf("by key: %+v, %v", found, err)
			}
			if found, err := first.Find(ctx, Query{Lag: time.Hour}); err != nil || len(found) != 0 {
				t.Errorf("a list that lags: %+v, %v", found, err)
			}
			if there, err := first.Delete(ctx, a.ID, 0); err != nil || !there {
				t.Errorf("delete: %v, %v", there, err)
			}
			if there, err := second.Delete(ctx, a.ID, 0); err != nil || there {
				t.Errorf("delete what is gone: %v, %v", there, err)
			}
			if there, err := second.Delete(ctx, b.ID, time.Hour); err != nil || !there {
				t.Errorf("delete: %v, %v", there, err)
			}
			if found, err := first.Find(ctx, Query{ID: b.ID}); err != nil || len(found) != 1 || found[0].Gone.IsZero() {
				t.Errorf("one that lingers: %+v, %v", found, err)
			}
			if found, err := first.Find(ctx, Query{ID: a.ID}); err != nil || len(found) != 0 {
				t.Errorf("one that is gone: %+v, %v", found, err)
			}
		})
	}
}

func TestReportSaysWhatMustNotBe(t *testing.T) {
	t.Parallel()
	l := NewBooks()
	for _, token := range []bool{true, false} {
		if _, err := l.Create(ctx, want("n1", "k1", token)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Delete(ctx, "nobody", 0); err != nil {
		t.Fatal(err)
	}
	one, two := Effect{Task: "t1", Attempt: 1, Node: "n1", Process: 7}, Effect{Task: "t2", Attempt: 1, Node: "n1", Process: 8}
	begin := func(e Effect) {
		if err := l.Begin(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	begin(one)
	begin(two)
	r := l.Report()
	if len(r.Doubled) != 1 || r.Doubled[0] != "k1" || len(r.Unknown) != 1 || len(r.Overlaps) != 1 || !strings.Contains(r.Overlaps[0], "t2") || r.Creates != 2 || r.Made != 2 || len(r.Live) != 2 {
		t.Errorf("%+v", r)
	}
	// The process of the second dies: the next one on the machine is alone, and what
	// the dead one still did is late.
	l.Abandon(8)
	three := Effect{Task: "t2", Attempt: 2, Node: "n1", Process: 9}
	begin(three)
	for _, e := range []Effect{two, three} {
		if err := l.End(ctx, e, true); err != nil {
			t.Fatal(err)
		}
	}
	if r := l.Report(); len(r.Overlaps) != 1 || r.Late != 1 {
		t.Errorf("%+v", r)
	}
	if done, begun := l.Done("t2"); begun != 2 || done[1] != 1 || done[2] != 1 {
		t.Errorf("%v, %d", done, begun)
	}
	l.Forget()
	if _, begun := l.Done("t2"); begun != 0 {
		t.Error("what was forgotten is known")
	}
}

// TestSoftwareIsWhatWasDone: in the order in which it was, but for what a process that
// stood still ends behind the back of another.
func TestSoftwareIsWhatWasDone(t *testing.T) {
	t.Parallel()
	l := NewBooks()
	do := func(e Effect, begin, end bool) {
		t.Helper()
		e.Key, e.Node, e.Service = "k1", "n1", "web"
		if begin {
			if err := l.Begin(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		if end {
			if err := l.End(ctx, e, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	is := func(want Software) {
		t.Helper()
		if got := l.On("k1")["web"]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	is(Software{})
	do(Effect{Task: "install", Attempt: 1, Action: loom.ActionInstall, Release: "1", Process: 7}, true, true)
	do(Effect{Task: "start", Attempt: 1, Action: loom.ActionStart, Process: 7}, true, true)
	do(Effect{Task: "configure", Attempt: 1, Action: loom.ActionConfigure, Process: 7}, true, true)
	is(Software{Release: "1", Running: true})
	stop := Effect{Task: "stop", Attempt: 1, Action: loom.ActionStop, Process: 7}
	do(stop, true, false)
	l.Abandon(7)
	stop.Attempt, stop.Process = 2, 8
	do(stop, true, true)
	is(Software{Release: "1"})
	do(Effect{Task: "install2", Attempt: 1, Action: loom.ActionInstall, Release: "2", Process: 8}, true, true)
	do(Effect{Task: "start2", Attempt: 1, Action: loom.ActionStart, Process: 8}, true, true)
	stop.Attempt, stop.Process = 1, 7
	do(stop, false, true)
	is(Software{Release: "2", Running: true})
	// It went on by itself, and nobody else was there.
	do(Effect{Task: "stop2", Attempt: 1, Action: loom.ActionStop, Process: 7}, true, true)
	is(Software{Release: "2"})
	l.Forget()
	is(Software{})
}

func TestFileOutlivesAWriterThatWasKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(ctx, want("n1", "k1", true)); err != nil {
		t.Fatal(err)
	}
	l.Close()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"made": {"id": "half`); err != nil {
		t.Fatal(err)
	}
	file.Close()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			l, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			for range 25 {
				if _, err := l.Create(ctx, want("n2", "", false)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	l, err = Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if found, err := l.Find(ctx, Query{}); err != nil || len(found) != 101 || found[0].ID != "mock-n1" {
		t.Errorf("%d machines, %v", len(found), err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(Handler(NewBooks()))
	server.Close()
	if _, err := Dial(server.URL).Find(ctx, Query{}); err == nil || !strings.Contains(err.Error(), "simulator") {
		t.Error(err)
	}
	other := httptest.NewServer(Handler(NewBooks()))
	defer other.Close()
	for _, path := range []string{"/create", "/begin", "/end"} {
		if _, err := (client{other.URL}).call(ctx, path, ask{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if c := Of(loom.Provider{Type: "aws", Fields: map[string]any{"simulator": other.URL}}, nil); c != nil {
		t.Error("another provider got the simulator")
	}
}
