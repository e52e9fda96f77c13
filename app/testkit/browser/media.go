//go:build browser

package browser

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Media asks pages for what somebody has set in the system, as pairs of a media feature
// and its value ("forced-colors", "active"). It replaces what was asked for before, Dark
// included; without pairs nothing is asked for.
func (b *Browser) Media(pairs ...string) {
	b.t.Helper()
	features := []*emulation.MediaFeature{}
	for i := 0; i+1 < len(pairs); i += 2 {
		features = append(features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
	}
	b.Do("choose what the system asks for", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}))
}
