package templateview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/adminview"
	"loom/views/clusterview"
	"loom/views/templateview"
	"loom/views/ui"
)

func matrix(step string) templateview.MatrixModel {
	m := templateview.MatrixModel{ID: "matrix", Services: []string{"base", "front", "pg"}, StepURL: step}
	marks := [][]templateview.MatrixMark{{"", templateview.MarkMust, templateview.MarkPart}, {templateview.MarkMust, "", templateview.MarkClash}, {templateview.MarkPart, templateview.MarkClash, ""}}
	for _, row := range marks {
		var cells []templateview.MatrixCell
		for _, mark := range row {
			cells = append(cells, templateview.MatrixCell{Mark: mark, Next: loom.RelationCant})
		}
		m.Cells = append(m.Cells, cells)
	}
	return m
}

func sizes() templateview.SizesModel {
	return templateview.SizesModel{Summary: "The template allows 1–6 nodes.", Note: "More could be tried.", Rows: []templateview.SizeRow{
		{Machines: 1, State: templateview.SizeCannot, Why: "At least 3 are needed.", Href: "/1"}, {Machines: 2, State: templateview.SizeCannot, Why: "At least 3 are needed.", Href: "/2"},
		{Machines: 3, State: templateview.SizeFits, Layout: []templateview.SizeNodes{{Count: 2, Services: "base, front"}, {Count: 1, Services: "pg"}}, Asked: true, Href: "/3"},
		{Machines: 4, State: templateview.SizeFits, Layout: []templateview.SizeNodes{{Count: 2, Services: "base"}, {Count: 2, Services: "pg"}}}, {Machines: 5, State: templateview.SizeUndecided}, {Machines: 6, State: templateview.SizeUntried},
	}}
}

// grown are sizes that grow by nginx alone up to 4, then by haproxy.
func grown() (rows []templateview.SizeRow) {
	for n := 2; n < 6; n++ {
		balancers := max(1, n-3)
		rows = append(rows, templateview.SizeRow{Machines: n, State: templateview.SizeFits, Layout: []templateview.SizeNodes{{Count: balancers, Services: "haproxy"}, {Count: n - balancers, Services: "nginx"}}})
	}
	return rows
}

func tryModel() templateview.TryModel {
	s := sizes()
	return templateview.TryModel{
		Head: adminview.HeadModel{Kind: loom.KindTemplate, Name: "gaps"}, Action: "/admin/templates/gaps/try", Edit: "/admin/templates/gaps/edit",
		Fields: templateview.TryFields{Machines: ui.FieldModel{Name: templateview.FieldTryMachines, Label: "Number of nodes"}, Differs: "as the template says",
			Services: ui.ChoiceModel{Name: templateview.FieldTryServices, Legend: "Services", Choices: []ui.Choice{{Value: "base", Label: "base", Checked: true}}}},
		Answer: templateview.TryAnswer{Sizes: &s, Apply: []ui.ButtonModel{{Label: "Allow 8 nodes", Submit: true}}, Panel: clusterview.CheckPanel{
			Head: ui.CheckModel{State: ui.CheckFits, Headline: "3 nodes, 3 services"}, Layout: ui.NewLayoutPicture("trial-layout", loom.Layout{
				{Count: 2, NodeLayout: loom.NodeLayout{HardwareType: "a-hardware-type-with-a-long-name", ImageType: "deb", Services: []string{"front", "base"}}},
				{Count: 1, NodeLayout: loom.NodeLayout{HardwareType: "small", ImageType: "deb", Services: []string{"pg"}}},
			})}},
	}
}

func components() map[string]templ.Component {
	return map[string]templ.Component{
		"try": templateview.TryPage(tryModel()), "try_in_form": templateview.TryInForm(tryModel()), "matrix": templateview.Matrix(matrix("")), "matrix_form": templateview.Matrix(matrix("/step")),
		"sizes":    templateview.SizesPart(templateview.SizesModel{Summary: "All work.", Rows: grown()}),
		"coexist":  templateview.CoexistPicture(matrix("/step"), []templateview.ClashModel{{Text: "front and pg are in both lists."}}, []string{"Groups that overlap chain together."}, ""),
		"empty":    templateview.CoexistPicture(templateview.MatrixModel{ID: "matrix"}, nil, nil, "Choose services first."),
		"advice":   templateview.Follows("advice", "/step", "region", templateview.Advice([]templateview.AdviceModel{{Text: "app requires base.", Button: ui.ButtonModel{Label: "Add it"}}})),
		"locked":   templateview.Locked([]templateview.LockedKey{{Key: "audit", Value: "{}", By: "part"}}),
		"resolved": templateview.Resolved(templateview.ResolvedModel{Groups: []templateview.ResolvedGroup{{Title: "Default config", Rows: []templateview.ResolvedRow{{Term: "audit", Value: "1", From: "partial template part", Href: "/p", Over: "base", Locked: true}, {Term: "own", Own: true}}}}}),
		"effects":  templateview.Effects(templateview.EffectsModel{StepURL: "/step", Rows: []templateview.EffectRow{{Name: "one", Href: "/one", Changes: []ui.ChangeModel{{Sign: ui.SignChange, Name: "defaults.provider", Old: "a", New: "b"}}}, {Name: "two", Href: "/two", Problem: "It could not be used any more."}}}),
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	golden.HTML(t, components())
}

// What a cell says goes there and back, whatever services are called.
func TestRelateValues(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}, {"a b", "c+d"}, {"%20", "&amp;"}, {"ä", ":"}} {
		for _, relation := range []loom.Relation{loom.RelationNone, loom.RelationMust, loom.RelationCant} {
			pair, got, ok := templateview.ParseRelate(templateview.RelateValue(loom.NewPair(names[0], names[1]), relation))
			if !ok || pair != loom.NewPair(names[0], names[1]) || got != relation {
				t.Errorf("%v %q became %v %q", names, relation, pair, got)
			}
		}
	}
	for _, bad := range []string{"", "relate:", "relate:must a", "relate:love a b", "relate:must a a", "must a b", "relate:must %zz b"} {
		if _, _, ok := templateview.ParseRelate(bad); ok {
			t.Errorf("%q was read", bad)
		}
	}
}

// Fifty services make a matrix that is within reason, each pair once to press by keys.
func TestLargeMatrix(t *testing.T) {
	t.Parallel()
	m := templateview.MatrixModel{ID: "matrix", StepURL: "/admin/templates/data-platform/edit/constraints"}
	const n = 40
	for i := range n {
		m.Services = append(m.Services, fmt.Sprintf("hadoop-component-%02d", i))
		m.Cells = append(m.Cells, make([]templateview.MatrixCell, n))
	}
	html := golden.Render(t, templateview.Matrix(m))
	if got := strings.Count(html, "data-cell"); got != n*(n-1) {
		t.Errorf("%d cells", got)
	}
	if got := strings.Count(html, `tabindex="-1"`); got != n*(n-1)/2 {
		t.Errorf("%d cells are not for the Tab key", got)
	}
	if len(html) > 700<<10 {
		t.Errorf("%d KB", len(html)>>10)
	}
}
