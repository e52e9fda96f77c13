package ui_test

import (
	"testing"

	"loom/views/ui"
)

func TestBrowserNames(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                         "Firefox on Linux",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18 Safari/605": "Safari on macOS",
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0":      "Edge on Windows",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36":       "Chrome on Android",
		"robot/1.0 something": "robot/1.0", "": "Unknown browser",
	} {
		if got := ui.BrowserName(agent); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
	}
}
