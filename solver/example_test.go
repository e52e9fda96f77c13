package solver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/golden"
)

// worked is a file of testdata: a template's constraints and what comes of it for
// several numbers of machines.
type worked struct {
	About         string           `json:"about"`
	HardwareTypes []string         `json:"hardwaretypes"`
	ImageTypes    []string         `json:"imagetypes"`
	Services      []string         `json:"services"`
	Constraints   loom.Constraints `json:"constraints"`
	Sizes         *loom.SizeRange  `json:"sizes"`
	Cases         []workedCase     `json:"cases"`
}

type workedCase struct {
	Machines int      `json:"machines"`
	Layout   []string `json:"layout,omitempty"`
	Headline string   `json:"headline,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
}

// rewrite replaces the answers of an example and leaves the question.
func rewrite(t *testing.T, file string, body []byte, cases []workedCase) {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	all["cases"] = cases
	body, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(body, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func layoutText(l loom.Layout) []string {
	var out []string
	for _, g := range l {
		out = append(out, fmt.Sprintf("%d %s/%s %s", g.Count, g.HardwareType, g.ImageType, strings.Join(g.Services, ",")))
	}
	return out
}

func solved(t testing.TB, p Problem) []string {
	t.Helper()
	l, unsat, err := Solve(context.Background(), p)
	if err != nil || unsat != nil {
		t.Fatalf("Solve: %+v %v", unsat, err)
	}
	if broken := Valid(p, l); len(broken) > 0 {
		t.Fatalf("layout %v breaks %+v", layoutText(l), broken)
	}
	return layoutText(l)
}

func TestWorkedExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var w worked
			d := json.NewDecoder(bytes.NewReader(body))
			d.DisallowUnknownFields()
			if err := d.Decode(&w); err != nil {
				t.Fatal(err)
			}
			if *golden.Update {
				defer func() { rewrite(t, file, body, w.Cases) }()
			}
			for i, c := range w.Cases {
				p := mustProblem(t, testInput(c.Machines, w.Services, w.HardwareTypes, w.ImageTypes, w.Constraints))
				sizes, ok, err := Sizes(context.Background(), p)
				if err != nil || ok != (w.Sizes != nil) || ok && sizes != *w.Sizes {
					t.Errorf("sizes %v %v %v, want %v", sizes, ok, err, w.Sizes)
				}
				l, unsat, err := Solve(context.Background(), p)
				if err != nil {
					t.Fatal(err)
				}
				if *golden.Update {
					w.Cases[i] = workedCase{Machines: c.Machines, Layout: layoutText(l)}
					c = w.Cases[i]
				}
				if got := layoutText(l); !reflect.DeepEqual(got, c.Layout) {
					t.Errorf("%d machines: layout %q, want %q", c.Machines, got, c.Layout)
				}
				if len(w.Services) <= 6 && c.Machines < 8 {
					checkAgainstOracle(t, p)
				}
				var reasons []string
				headline := ""
				if unsat != nil {
					headline = unsat.Headline
					for _, r := range unsat.Reasons {
						reasons = append(reasons, r.ID+": "+r.Message)
					}
				}
				if *golden.Update {
					w.Cases[i].Headline, w.Cases[i].Reasons = headline, reasons
					c = w.Cases[i]
				}
				if headline != c.Headline || !reflect.DeepEqual(reasons, c.Reasons) {
					t.Errorf("%d machines: %s\n%s\nwant %s\n%s", c.Machines, headline, strings.Join(reasons, "\n"), c.Headline, strings.Join(c.Reasons, "\n"))
				}
			}
		})
	}
}
