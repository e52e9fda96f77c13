package solver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"loom/app/loom"
)

// An example with known answers.
func TestExampleH(t *testing.T) {
	t.Parallel()
	one, two := 1, 2
	single := loom.ServiceConstraint{Quantities: &loom.Quantities{Min: &one, Max: &one}}
	db := single
	db.HardwareTypes = []string{"large"}
	in := testInput(4, []string{"db", "lb", "web", "cache", "metrics", "lb2"}, []string{"large", "small"}, []string{"deb"}, loom.Constraints{
		Services: map[string]loom.ServiceConstraint{"db": db, "lb": single, "cache": {Quantities: &loom.Quantities{Min: &one, Max: &two}}},
		Layout:   loom.LayoutConstraints{CantCoexist: [][]string{{"db", "web"}, {"cache", "web"}, {"lb2", "web"}, {"lb2", "db"}}},
	})
	c := Cluster{Input: in}
	for _, s := range [][]string{{"db", "lb"}, {"web"}, {"web"}, {"web"}} {
		c.Nodes = append(c.Nodes, Node{ID: fmt.Sprint(1000 + len(c.Nodes)), NodeLayout: loom.NodeLayout{HardwareType: "large", ImageType: "deb", Services: s}})
	}
	for add, want := range map[string]string{
		"cache":   "[1 large/deb cache,db,lb 3 large/deb web]",
		"metrics": "[1 large/deb db,lb,metrics 3 large/deb metrics,web]",
	} {
		got, unsat, err := Add(context.Background(), c, []string{add})
		if err != nil || unsat != nil || fmt.Sprint(layoutText(got.Layout)) != want {
			t.Errorf("add %s: %v %+v %v", add, layoutText(got.Layout), unsat, err)
		}
	}
	_, unsat, err := Add(context.Background(), c, []string{"lb2"})
	if err != nil || unsat == nil {
		t.Fatal(unsat, err)
	}
	var ids []string
	for _, r := range unsat.Reasons {
		ids = append(ids, r.ID)
	}
	if unsat.Headline != "No existing node may hold lb2: 1 × {db, lb}, 3 × {web}." || fmt.Sprint(ids) != "[cant#2 cant#3]" {
		t.Errorf("%s %v", unsat.Headline, ids)
	}
	if got := labels(SuggestChange(context.Background(), c, []string{"lb2"}, nil, unsat)); len(got) == 0 || got[0] != "Do not add lb2" {
		t.Errorf("suggestions %q", got)
	}
}

// The path does not matter unless a maximum says so: by one three times is as by
// three.
func TestExpandInSteps(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(28, 1))
	compared := 0
	for range 500 {
		c, _ := randomCluster(r, 4)
		for name, sc := range c.Input.Template.Constraints.Services {
			if sc.Quantities != nil {
				sc.Quantities.Max = nil
				c.Input.Template.Constraints.Services[name] = sc
			}
		}
		if breaks(c.Input, bare(c.Nodes)) {
			continue
		}
		at := len(c.Nodes)
		once, unsat, err := Expand(context.Background(), c, at+3)
		if err != nil {
			t.Fatal(err)
		}
		steps := c
		for i := 1; i <= 3 && unsat == nil; i++ {
			out, no, err := Expand(context.Background(), steps, at+i)
			if err != nil || no != nil {
				t.Fatalf("%s: step %d: %+v %v", toJSON(t, c), i, no, err)
			}
			steps.Nodes = out.Nodes
		}
		if unsat == nil {
			compared++
			if !reflect.DeepEqual(steps.Nodes, once.Nodes) {
				t.Fatalf("%s\nin steps %s\nat once  %s", toJSON(t, c), toJSON(t, steps.Nodes), toJSON(t, once.Nodes))
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d comparable clusters", compared)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	in := testInput(3, []string{"db", "web"}, []string{"large", "small", "tiny"}, []string{"deb"}, loom.Constraints{
		Services: map[string]loom.ServiceConstraint{"db": {HardwareTypes: []string{"large", "small"}}}})
	in.Template.Compatibility.HardwareTypes = []string{"large", "small", "none"}
	c := Cluster{Input: in}
	for _, s := range []string{"db", "web", "web"} {
		c.Nodes = append(c.Nodes, Node{ID: fmt.Sprint(len(c.Nodes)), NodeLayout: loom.NodeLayout{HardwareType: "large", ImageType: "deb", Services: []string{s}}})
	}
	for _, x := range []struct{ hardware, service, code, want string }{
		{"small", "", "", "[1 small/deb db 2 small/deb web]"},
		{"small", "web", "", "[1 large/deb db 2 small/deb web]"},
		{"tiny", "", CodeHardwareType, ""},
		{"gone", "web", CodeHardwareType, ""},
		{"small", "cache", CodeNotPresent, ""},
	} {
		var services []string
		if x.service != "" {
			services = []string{x.service}
		}
		got, unsat, err := Resize(context.Background(), c, x.hardware, services)
		switch {
		case err != nil:
			t.Fatal(err)
		case x.code != "" && (unsat == nil || unsat.Code != x.code):
			t.Errorf("%+v: %+v", x, unsat)
		case x.code == "" && (unsat != nil || fmt.Sprint(layoutText(got.Layout)) != x.want):
			t.Errorf("%+v: %v %+v", x, layoutText(got.Layout), unsat)
		}
	}
	c.Input.Template.Constraints.Services["db"] = loom.ServiceConstraint{HardwareTypes: []string{"large"}}
	if _, unsat, err := Resize(context.Background(), c, "small", nil); err != nil || unsat == nil || unsat.Reasons[0].ID != "hardware(db)" {
		t.Errorf("db only on large: %+v %v", unsat, err)
	}
	if c.Nodes[0].HardwareType != "large" {
		t.Error("the caller's nodes were changed")
	}
}

// What a must-coexist set will bring later does not count yet when nodes are
// compared for an earlier service.
func TestAddComparesNodesAsTheyAre(t *testing.T) {
	t.Parallel()
	one := 1
	in := testInput(2, []string{"b", "c", "d", "e"}, []string{"h1", "h2"}, []string{"i"}, loom.Constraints{
		Layout:   loom.LayoutConstraints{MustCoexist: [][]string{{"b", "c"}}},
		Services: map[string]loom.ServiceConstraint{"d": {Quantities: &loom.Quantities{Max: &one}}},
	})
	c := Cluster{Input: in, Nodes: []Node{{"x", loom.NodeLayout{HardwareType: "h2", ImageType: "i", Services: []string{"b"}}}, {"y", loom.NodeLayout{HardwareType: "h1", ImageType: "i", Services: []string{"e"}}}}}
	got, unsat, err := Add(context.Background(), c, []string{"c", "d"})
	if err != nil || unsat != nil || fmt.Sprint(got.Nodes) != "[{x {h2 i [b c]}} {y {h1 i [d e]}}]" {
		t.Errorf("%v %+v %v", got.Nodes, unsat, err)
	}
}

func TestAlterIsStoppedInTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, add := randomCluster(rand.New(rand.NewPCG(3, 3)), 4)
	if _, _, err := Add(ctx, c, add); !errors.Is(err, loom.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// Where hardware types are equally preferred, the preferred image type counts
// before their names.
func TestImagePreferenceComesBeforeHardwareName(t *testing.T) {
	t.Parallel()
	in := testInput(4, []string{"a", "b"}, []string{"h1", "h2"}, []string{"i1", "i2"}, loom.Constraints{
		Services: map[string]loom.ServiceConstraint{"a": {HardwareTypes: []string{"h2"}}, "b": {HardwareTypes: []string{"h1"}, ImageTypes: []string{"i2"}}},
	})
	in.Template.Preferences = &loom.Preferences{ImageTypes: []string{"i1"}}
	_, got, unsat, err := Create(context.Background(), in)
	if err != nil || unsat != nil || fmt.Sprint(layoutText(got)) != "[3 h2/i1 a 1 h1/i2 b]" {
		t.Errorf("%v %+v %v", layoutText(got), unsat, err)
	}
}
