//go:build browser

package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axe is axe-core; see testdata/README.md.
//
//go:embed testdata/axe.min.js
var axe string

// violation is a rule of axe that the page breaks.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// Faults scans the page for accessibility faults, by all rules of axe or by some,
// and describes each with its first elements; none is the goal.
func (b *Browser) Faults(rules ...string) []string {
	b.t.Helper()
	options := map[string]any{"resultTypes": []string{"violations"}}
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	wanted, err := json.Marshal(options)
	if err != nil {
		b.t.Fatal(err)
	}
	if !look[bool](b, "!!window.axe") { // half a megabyte, once per page
		b.Do("load axe", chromedp.Evaluate[chromedp.Void](axe+"\n;undefined"))
	}
	text := Get(b, "scan the page", chromedp.Evaluate[string](
		`window.axe.run(document, `+string(wanted)+`).then(r => JSON.stringify(r.violations))`, chromedp.EvalAwaitPromise))
	var all []violation
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		b.t.Fatalf("answer of axe: %v: %.200s", err, text)
	}
	var faults []string
	for _, v := range all {
		var places []string
		for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
			places = append(places, fmt.Sprintf("%.200s (%s)", n.HTML, strings.Join(strings.Fields(n.FailureSummary), " ")))
		}
		faults = append(faults, fmt.Sprintf("%s (%s): %s: %d times, such as %s", v.ID, v.Impact, v.Help, len(v.Nodes), strings.Join(places, "; ")))
	}
	return faults
}

// Inspect fails the test where axe finds a fault in the page at hand, in light colors and in
// dark ones. Given widths, it also looks at the page as narrow as these, which must not be
// wider than the window; axe sees the last of them, in dark colors.
func (b *Browser) Inspect(what string, narrow ...int64) {
	b.t.Helper()
	look := func(color string, rules ...string) {
		b.t.Helper()
		for _, fault := range b.Faults(rules...) {
			b.t.Errorf("%s, %s: %s", what, color, fault)
		}
		if over := b.Page().Overflow; over > 0 {
			b.t.Errorf("%s, %s: the page is %d pixels too wide", what, color, over)
		}
	}
	b.Dark(false)
	look("light")
	b.Dark(true)
	if len(narrow) == 0 {
		look("dark", "color-contrast") // nothing else depends on colors
	}
	for i, width := range narrow {
		b.Size(width)
		var rules []string // all of them: a narrow page has other parts
		if i < len(narrow)-1 {
			rules = []string{"color-contrast"}
		}
		look(fmt.Sprintf("dark, %d pixels", width), rules...)
	}
	b.Dark(false)
	if len(narrow) > 0 {
		b.Size(1280)
	}
}

// Dark asks pages for their dark colours, or no more.
func (b *Browser) Dark(on bool) {
	b.t.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	b.Do("choose colours", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			// Without motion: half way from light to dark nothing can be read.
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}
