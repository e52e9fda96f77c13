//go:build browser

package web_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// roomyText is what people set who need more room to read (WCAG 1.4.12), as a stylesheet
// that wins over that of the page.
const roomyText = `(s => { s.replaceSync("* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; } p { margin-block-end: 2em !important; }");
	document.adoptedStyleSheets = [s]; return "" })(new CSSStyleSheet())`

// textCutOff names what holds text that cannot be read: it is hidden, and neither scrolls nor
// ends in dots.
const textCutOff = `[...document.querySelectorAll("main *, header *, footer *")].filter(e => {
	const s = getComputedStyle(e);
	return e.childElementCount === 0 && e.textContent.trim() && e.checkVisibility() && !e.closest(".u-hidden, svg, select, [class*=l-user-name]") && s.textOverflow !== "ellipsis"
		&& ["hidden", "clip"].includes(s.overflowX) && s.clipPath === "none" && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1);
}).map(e => e.className + ": " + e.textContent.slice(0, 40)).join(", ")`

// whatMoves names what would move although nothing is to.
const whatMoves = `[...document.querySelectorAll("*")].filter(e => getComputedStyle(e).animationName !== "none" || parseFloat(getComputedStyle(e).transitionDuration) > 0).map(e => e.className?.baseVal ?? e.className).join(", ")`

// unseenText names texts and boxes of pictures that have the colour of their ground where
// the system chose the colours.
const unseenText = `(ground => [...document.querySelectorAll(".dag-title, .dag-line, .dag-box, .lay-name, .c-chart text, .c-badge, .c-button:not([data-kind=quiet]), .gantt-bar rect")]
	.filter(e => e.checkVisibility()).filter(e => {
		const s = getComputedStyle(e);
		if (e instanceof SVGElement) return (e.matches("rect") ? s.stroke : s.fill) === ground;
		return s.color === (s.forcedColorAdjust === "none" ? s.backgroundColor : ground);
	})
	.map(e => (e.className.baseVal ?? e.className) + " " + e.textContent.slice(0, 20)).join(", "))(getComputedStyle(document.documentElement).backgroundColor)`

// TestPagesFollowTheSystem opens the main pages with colours that the system forces, more
// contrast, no motion, more room between letters, and twice as large.
func TestPagesFollowTheSystem(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	shop, blog, long := w.create("shop", 3), w.create("blog", 2), w.create(strings.Repeat("a-rather-long-name-", 6), 2)
	w.runSome(shop, 2, 2)
	w.finish(blog, loom.ClusterActive)
	w.fail(loom.TaskRef{Operation: long, Number: 1}, "no capacity left in this place")
	b, base := w.browse(t, "admin", browser.Options{})
	pictures := os.Getenv("LOOM_SCREENSHOTS")
	for i, path := range []string{
		"/", "/clusters", "/clusters/new?template=web-cluster", route.Cluster(long.Cluster), route.ClusterNodes(blog.Cluster), route.OperationGraph(shop),
		route.OperationTimeline(shop), "/catalog", "/usage", "/admin", "/admin/services/new",
	} {
		b.Media()
		b.Size(1280)
		b.Open(base + path)
		b.WaitLoaded()
		take := func(what string) {
			if pictures != "" {
				b.Picture(filepath.Join(pictures, strconv.Itoa(i)+"-"+what+".png"))
			}
		}
		tell := func(what, script string) {
			t.Helper()
			if got := browser.Get(b, what, chromedp.Evaluate[string](script)); got != "" {
				t.Errorf("%s, %s: %.600s", path, what, got)
			}
		}
		for _, scheme := range []string{"dark", "light"} {
			b.Media("forced-colors", "active", "prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
			tell("colours of the system, "+scheme, unseenText)
			take("forced-" + scheme)
		}
		tell("without motion", whatMoves)
		b.Media("prefers-contrast", "more", "prefers-reduced-motion", "reduce")
		for _, fault := range b.Faults("color-contrast") {
			t.Errorf("%s, more contrast: %s", path, fault)
		}
		take("contrast")
		b.Media("prefers-reduced-motion", "reduce")
		tell("more room", roomyText)
		for _, width := range []int64{1280, 640, 320} {
			b.Size(width)
			if over := b.Page().Overflow; over > 0 {
				t.Errorf("%s with more room, %d pixels: %d too wide", path, width, over)
			}
			tell("more room, "+strconv.FormatInt(width, 10), textCutOff)
			take("room-" + strconv.FormatInt(width, 10))
		}
	}
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
