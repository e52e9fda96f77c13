package clusters_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("s%03d", i)
	}
	return names
}

// TestUnknownServicesAreBounded: requests that name many services, or services that are
// not there, are refused before the search, in few words; a few unknown ones are told of
// as before.
func TestUnknownServicesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.made(3)
	create := func(names []string) error {
		in := request(3)
		in.Services = names
		_, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
		return err
	}
	change := func(kind loom.ChangeKind) func(names []string) error {
		return func(names []string) error {
			in := clusters.PreviewInput{Kind: kind, Cluster: id}
			if kind == loom.ChangeAddServices {
				in.Services = names
			} else {
				in.Change.Services = names
			}
			_, err := b.clusters.Preview(b.ctx, b.ana(), in)
			return err
		}
	}
	tooMany := "A request names at most 500 services; this one names 501."
	unknown := "There are no services named “s000”, “s001”, “s002”, “s003”, “s004” and 16 more."
	long := strings.Repeat("x", loom.MaxNameLength+1)
	cut := "There is no service named “" + long[:200] + "…”."
	for _, asks := range []struct {
		kind loom.ChangeKind
		ask  func(names []string) error
	}{
		{loom.ChangeCreate, create},
		{loom.ChangeAddServices, change(loom.ChangeAddServices)},
		{loom.ChangeRemoveServices, change(loom.ChangeRemoveServices)},
	} {
		for _, c := range []struct {
			names []string
			says  string
		}{
			{numbered(501), tooMany}, {slices.Repeat([]string{"web"}, 501), tooMany},
			{numbered(21), unknown}, {append(numbered(21), numbered(21)...), unknown}, {[]string{long}, cut},
		} {
			e := wantKind(t, asks.ask(c.names), loom.Invalid)
			if len(e.Fields) != 1 || e.Fields[0].Field != "services" || e.Fields[0].Message != c.says {
				t.Errorf("%s with %d names: %+v, want %s", asks.kind, len(c.names), e.Fields, c.says)
			}
		}
		e := wantKind(t, asks.ask(numbered(20)), loom.Unsolvable)
		if e.Unsat == nil || len(e.Unsat.Reasons) != 20 && len(e.Unsat.Reasons) != 21 {
			t.Errorf("%s with 20 unknown names: %+v", asks.kind, e.Unsat)
		}
	}
	for _, kind := range []loom.ChangeKind{loom.ChangeUpgrade, loom.ChangeResize} {
		e := wantKind(t, change(kind)(slices.Repeat([]string{"web"}, 501)), loom.Invalid)
		if len(e.Fields) != 1 || e.Fields[0].Message != tooMany {
			t.Errorf("%s: %+v", kind, e.Fields)
		}
	}
	in := request(3)
	in.Services = numbered(21)
	got, err := b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil || got.Unsat != nil || !slices.Contains(got.Fields, loom.FieldError{Field: "services", Message: unknown}) {
		t.Errorf("the check of a form: %+v, %v", got.Fields, err)
	}
}
