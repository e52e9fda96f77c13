package ui

import "testing"

// Short labels have no gap where they could be cut.
func TestTimelineLabels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"confirm": "conf\u200birm", "start haproxy": "start\u200b hapr\u200boxy", "boot": "boot"} {
		if got := (TimelineBar{Text: text}).label(); got != want {
			t.Errorf("%s is written %q, want %q", text, got, want)
		}
	}
}
