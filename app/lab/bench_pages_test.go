package lab

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPickedPages(t *testing.T) {
	t.Parallel()
	b := Bench{Pages: []string{"usage", "its n", "q 77"}, Seconds: 7}
	scale := b.scale()
	if err := b.Validate(); err != nil || scale.while != 7*time.Second || len(fullScale.picked) > 0 {
		t.Fatalf("%v, %+v", err, scale)
	}
	var names []string
	for _, p := range append(scale.pickedOf(pagesOf(1, "n", 1080, 14040)), scale.pickedOf(filtersOf())...) {
		names = append(names, p.name)
	}
	if got := strings.Join(names, ", "); got != "its nodes, usage, q 77" || scale.wants(livePages) {
		t.Errorf("picked %s, live pages %v", got, scale.wants(livePages))
	}
	if all := fullScale; len(all.pickedOf(filtersOf())) != len(filtersOf()) || !all.wants(livePages) {
		t.Error("without a choice something is left out")
	}
	for _, wrong := range []Bench{{Pages: []string{""}}, {Pages: []string{"home", "nowhere at all"}}, {Seconds: 61}, {Sizes: []int{3, 1}}, {Tasks: 9}} {
		if wrong.Validate() == nil {
			t.Errorf("%+v is valid", wrong)
		}
	}
}

// Whoever measures tells what gave no answer, and goes on: another program may have taken
// the address of a process, a page may hang.
func TestBenchWaitsForNoAnswerForEver(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // its backlog takes connections, nobody reads them
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // of a test
	if isWell(t.Context(), silent.Addr().String(), 50*time.Millisecond) {
		t.Error("who says nothing is well")
	}
	v := &visitor{"http://" + silent.Addr().String(), &http.Client{}, 50 * time.Millisecond}
	if _, err := v.send(t.Context(), http.MethodGet, "/clusters", nil, false); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "/clusters") {
		t.Errorf("a page without an answer: %v", err)
	}
	if err := v.part(t.Context(), livePart{"x", "/part", nil}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "/part") {
		t.Errorf("a part without an answer: %v", err)
	}
}
