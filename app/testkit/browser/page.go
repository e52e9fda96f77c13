//go:build browser

package browser

import (
	"context"
	"encoding/json"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// PageFacts are what a browser knows of the page it shows.
type PageFacts struct {
	// Status is that of HTTP.
	Status int
	Title  string
	// Heading is how many h1 there are.
	Heading int
	// Bytes is how much the page and what it loaded takes on the wire, without
	// headers; files that the browser had already count as well.
	Bytes int
	// Overflow is by how many pixels the page is wider than the window.
	Overflow int
}

// Page returns the facts of the page.
func (b *Browser) Page() PageFacts {
	b.t.Helper()
	text := Get(b, "ask for the page's facts", chromedp.Evaluate[string](`JSON.stringify({
		Status: performance.getEntriesByType("navigation")[0].responseStatus,
		Title: document.title,
		Heading: document.querySelectorAll("h1").length,
		Bytes: performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).reduce((sum, e) => sum + e.encodedBodySize, 0),
		Overflow: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
	})`))
	var p PageFacts
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		b.t.Fatalf("facts of the page: %v: %.200s", err, text)
	}
	return p
}

// Size returns the window another width in pixels.
func (b *Browser) Size(width int64) {
	b.t.Helper()
	b.Do("choose a width", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 1000, DeviceScaleFactor: 1})
		return err
	}))
}
