package macro

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestLongValuesAreNotRead: a value above the limit is refused for its length alone,
// whatever is wrong in it.
func TestLongValuesAreNotRead(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("%x%", MaxValue/3+1)
	problems := ValidateText(text)
	if len(problems) != 1 || problems[0].Severity != Limit || !strings.Contains(problems[0].Reason, fmt.Sprintf("at most %d bytes; this one has %d", MaxValue, len(text))) {
		t.Fatalf("%d problems, the first %v", len(problems), problems[0])
	}
	if template, _ := parse(text); len(template.segments) != 1 || !template.HasMacros() {
		t.Errorf("it was split into %d segments", len(template.segments))
	}
	if got, _ := lab().ExpandText(text, "a"); got != text {
		t.Error("it was changed")
	}
	// Doubled signs alone are no macros, however many.
	if problems := ValidateText(strings.Repeat("%%", MaxValue)); problems != nil {
		t.Errorf("doubled signs give %v", problems)
	}
}

// TestProblemsAreBounded for one value, and for all values of a config.
func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ü%x%", 1000)
	problems := ValidateText(text)
	if len(problems) != MaxProblems || problems[MaxProblems-1].Column != (MaxProblems-1)*4+2 {
		t.Errorf("%d problems of a value, the last %v", len(problems), problems[len(problems)-1])
	}
	if got, _ := lab().ExpandText(text, "a"); got != text {
		t.Error("the value was changed")
	}
	config := map[string]any{}
	for i := range 1000 {
		config[fmt.Sprintf("k%03d", i)] = "%host.service.none% %x%"
	}
	if problems := Validate(config); len(problems) != MaxProblems || problems[MaxProblems-1].Pointer != "/k099" {
		t.Errorf("%d problems of a config", len(problems))
	}
	// Warnings stop nothing, so they do not hide a mistake behind them either.
	mistakes, warnings := Split(lab().Check(config))
	if len(mistakes) != MaxProblems || len(warnings) != MaxProblems {
		t.Errorf("a check gives %d mistakes and %d warnings", len(mistakes), len(warnings))
	}
}

// TestClosings holds the ends of wrong macros against a search from each place.
func TestClosings(t *testing.T) {
	t.Parallel()
	search := func(text string, from int) int32 {
		quote := byte(0)
		for i := from; i < len(text); i++ {
			switch c := text[i]; {
			case c == '%' && quote == 0:
				return int32(i + 1)
			case quote == 0 && (c == '\'' || c == '"'):
				quote = c
			case c == quote:
				quote = 0
			}
		}
		return -1
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, r.IntN(30))
		for i := range text {
			text[i] = `%'"x`[r.IntN(4)]
		}
		for i, end := range closingsOf(string(text)) {
			if want := search(string(text), i); end != want {
				t.Fatalf("%q from %d: got %d, want %d", text, i, end, want)
			}
		}
	}
}

// front is a cluster whose nodes all have the service "front".
func front(nodes int) *Facts {
	all := map[loom.NodeID]loom.NodeProperties{}
	for i := range nodes {
		all[loom.NodeID(fmt.Sprint(i))] = loom.NodeProperties{Number: i, Hostname: fmt.Sprintf("web42-%d.local", i),
			Addresses: map[string]string{loom.BindV4: "10.0.0.1"}, Services: []string{"front"}}
	}
	return NewFacts("ana", all)
}

// mentions is a config of n macros, in values as long as they may be.
func mentions(n int, macro func(i int) string) map[string]any {
	var values []any
	var b strings.Builder
	for i := range n {
		m := macro(i)
		if b.Len()+len(m) > MaxValue {
			values = append(values, b.String())
			b.Reset()
		}
		b.WriteString(m)
	}
	return map[string]any{"a": append(values, b.String())}
}

// TestNodesAreLookedAtOnce counts the nodes that are looked at for a config full of macros.
func TestNodesAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	const nodes, macros = 500, 5000
	for _, test := range []struct {
		name  string
		macro func(i int) string
		// most is how often each node may be looked at.
		most int64
	}{
		{"the same macro", func(int) string { return "%host.service.front%" }, 1},
		{"macros that differ", func(i int) string { return fmt.Sprintf("%%join(host.service.front,'%d')%%", i) }, 1},
		{"types of address that no node has", func(i int) string { return fmt.Sprintf("%%ip.t%d.service.front%%", i) }, 0},
		{"addresses and hosts", func(i int) string { return []string{"%ip.service.front%", "%host.service.front%"}[i%2] }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := front(nodes)
			if problems := f.Check(mentions(macros, test.macro)); len(problems) > 0 {
				t.Errorf("problems %v", problems[0])
			}
			if got := f.collected.Load(); got > test.most*nodes {
				t.Errorf("a check looked at %d nodes", got)
			}
		})
	}
}

// TestExpansionsAreMeasured: what is too long is refused before it is made, and remembered
// values are those that fit.
func TestExpansionsAreMeasured(t *testing.T) {
	t.Parallel()
	f := front(500)
	expanded, problems := f.Expand(mentions(5000, func(i int) string { return fmt.Sprintf("%%join(host.service.front,'%d')%%", i) }), "0")
	size, made := 0, 0
	for _, v := range expanded["a"].([]any) {
		size += len(v.(string))
	}
	for _, r := range f.shared {
		made += len(r.value)
	}
	if len(problems) == 0 || size > MaxExpansion+6*MaxValue || made > MaxExpansion {
		t.Errorf("%d problems, %d bytes given, %d made", len(problems), size, made)
	}
	if got := f.collected.Load(); got > 500 {
		t.Errorf("%d nodes were looked at", got)
	}
	for _, text := range []string{
		"%host.service.front%", "%join(map(host.service.front,'$$-$-$'),'; ')%", "%map(num.service.front,'$$$')%", "%map(host.service.front,'')%", "%join(map(ip.service.front,''),'')%",
	} {
		parsed, _ := parse(text)
		size, _ := f.measure(parsed.segments[0].expr, "0", true)
		if got, problems := f.ExpandText(text, "0"); len(got) != size || len(problems) > 0 {
			t.Errorf("%s: measured %d bytes, made %d, %v", text, size, len(got), problems)
		}
	}
}

// TestProposalsAreBounded: for a hundred names that are absent, one that is near is looked for.
func TestProposalsAreBounded(t *testing.T) {
	t.Parallel()
	f := front(1)
	problems := f.Check(mentions(1000, func(i int) string { return fmt.Sprintf("%%host.service.front%d%%", i%200) }))
	near := map[string]bool{}
	for _, p := range problems {
		if strings.Contains(p.Reason, "the nearest name there is “front”") {
			near[p.Macro] = true
		}
	}
	if len(problems) != 1000 || len(near) != MaxProblems {
		t.Errorf("%d problems, %d proposals", len(problems), len(near))
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, bench := range []struct{ name, text string }{
		{"wrong", strings.Repeat("%x%", 512<<10/3)},
		{"quotes", strings.Repeat(`%x'%"%`, MaxValue/6)},
		{"right", strings.Repeat("%host.self%", MaxValue/11)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.text)))
			for b.Loop() {
				ValidateText(bench.text)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, bench := range []struct {
		name  string
		macro func(i int) string
	}{
		{"same", func(int) string { return "%host.service.front%" }},
		{"different", func(i int) string { return fmt.Sprintf("%%join(host.service.front,'%d')%%", i) }},
		{"absent", func(i int) string { return fmt.Sprintf("%%host.service.frnt%d%%", i) }},
	} {
		config := mentions(30_000, bench.macro)
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				front(10_000).Check(config)
			}
		})
	}
}

// allocated counts the bytes that a call allocates; no other test may run beside it.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestPathsAreMadeForProblems: values about which there is nothing to say cost no path, and
// no key costs more than its text.
func TestPathsAreMadeForProblems(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	long := map[string]any{strings.Repeat("k", 100<<10): make([]any, 5000)}
	short := map[string]any{}
	for i := range 5000 {
		short[fmt.Sprint(i)] = "%host.self%"
	}
	for _, test := range []struct {
		name   string
		config map[string]any
		call   func(f *Facts, config map[string]any)
	}{
		{"validate", long, func(_ *Facts, config map[string]any) { Validate(config) }},
		{"check", long, func(f *Facts, config map[string]any) { f.Check(config) }},
		{"expand", long, func(f *Facts, config map[string]any) { f.Expand(config, "0") }},
		{"mentions", long, func(_ *Facts, config map[string]any) { Mentions(config) }},
		{"lint", long, func(_ *Facts, config map[string]any) { Lint(config) }},
		{"expand keys", short, func(f *Facts, config map[string]any) { f.Expand(config, "0") }},
	} {
		f := front(2)
		if got := allocated(func() { test.call(f, test.config) }); got > 5000*500 {
			t.Errorf("%s allocates %d bytes", test.name, got)
		}
	}
}

// TestPointersAreCut: of what was stored with any key, pointers are short, and only those
// are made that are listed.
func TestPointersAreCut(t *testing.T) {
	t.Parallel()
	values := make([]any, 1000)
	for i := range values {
		values[i] = fmt.Sprintf("%%host.service.none%d%%", i)
	}
	config := map[string]any{strings.Repeat("k", 100<<10): map[string]any{"a": values}}
	f := front(1)
	_, expanding := f.Expand(config, "0")
	for name, problems := range map[string][]Problem{"check": f.Check(config), "expand": expanding} {
		named := 0
		for _, p := range problems {
			if p.Pointer != "" {
				named++
			}
			if len(p.Pointer) > loom.MaxConfigPath+len("…") {
				t.Fatalf("%s: a pointer of %d bytes", name, len(p.Pointer))
			}
		}
		if len(problems) != len(values) || named != MaxProblems {
			t.Errorf("%s: %d problems, %d with a pointer", name, len(problems), named)
		}
	}
}

// TestExpansionsAreShared: what is the same for all nodes is made once, and what holds no
// macros is not copied.
func TestExpansionsAreShared(t *testing.T) {
	t.Parallel()
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	f := front(2)
	config := map[string]any{"all": "%num.service.front%", "plain": map[string]any{"a": []any{"x"}}}
	one, _ := f.Expand(config, "0")
	two, _ := f.Expand(config, "1")
	if one["all"] != "2" || !same(one, two) || same(one, config) || !same(one["plain"], config["plain"]) {
		t.Errorf("nothing of self: %v and %v", one, two)
	}
	config = map[string]any{"own": []any{"%host.self%"}, "plain": map[string]any{"a": "x"}}
	one, _ = f.Expand(config, "0")
	two, _ = f.Expand(config, "1")
	if fmt.Sprint(one["own"], two["own"], config["own"]) != "[web42-0.local] [web42-1.local] [%host.self%]" || !same(one["plain"], two["plain"]) {
		t.Errorf("of self: %v and %v", one, two)
	}
	if other, _ := f.Expand(map[string]any{"all": "%num.service.none%"}, "0"); other["all"] != "0" {
		t.Errorf("another config: %v", other)
	}
}

// BenchmarkPaths goes through values below a long key.
func BenchmarkPaths(b *testing.B) {
	for _, values := range []int{10_000, 100_000} {
		config := map[string]any{strings.Repeat("k", 500<<10): make([]any, values)}
		b.Run(fmt.Sprint(values), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Validate(config)
			}
		})
	}
}
