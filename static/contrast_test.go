package static_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	pair    = regexp.MustCompile(`(?m)^ {4}--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`)
	alias   = regexp.MustCompile(`(?m)^ {4}--([a-z-]+): var\(--([a-z-]+)\);`)
	hexCode = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b`)
)

func stylesheet(t *testing.T) string {
	t.Helper()
	css, err := os.ReadFile("css/loom.css")
	if err != nil {
		t.Fatal(err)
	}
	return string(css)
}

// tokens reads the light and dark value of every colour.
func tokens(t *testing.T) map[string][2]string {
	t.Helper()
	css := stylesheet(t)
	found := map[string][2]string{}
	for _, m := range pair.FindAllStringSubmatch(css, -1) {
		if _, twice := found[m[1]]; twice {
			t.Errorf("--%s is defined twice", m[1])
		}
		found[m[1]] = [2]string{m[2], m[3]}
	}
	for _, m := range alias.FindAllStringSubmatch(css, -1) {
		if value, ok := found[m[2]]; ok {
			found[m[1]] = value
		}
	}
	return found
}

// luminance is the relative luminance of WCAG 2.x.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func TestContrast(t *testing.T) {
	t.Parallel()
	colours := tokens(t)
	checks := map[string]float64{
		"edge on surface": 3, "edge on canvas": 3, "focus on surface": 3, "focus on canvas": 3,
		"accent-strong on surface": 4.5, "on-accent on accent": 4.5, "on-accent on accent-strong": 4.5, "on-accent on bad": 4.5,
		"muted on code-bg": 4.5, "text on code-bg": 4.5, "muted on hover": 4.5, "text on hover": 4.5, "accent on hover": 4.5,
		"muted on run-tint": 4.5, "muted on idle-tint": 4.5, "muted on bad-tint": 4.5,
	}
	for _, text := range []string{"text", "muted", "accent"} {
		for _, ground := range []string{"surface", "canvas", "sunken"} {
			checks[text+" on "+ground] = 4.5
		}
	}
	for _, status := range []string{"ok", "run", "warn", "bad", "hold", "idle"} {
		checks[status+" on "+status+"-tint"] = 4.5
		checks[status+" on surface"] = 4.5
		checks["text on "+status+"-tint"] = 4.5
	}
	for _, ansi := range []string{"red", "green", "yellow", "blue", "magenta", "cyan"} {
		checks["ansi-"+ansi+" on code-bg"] = 4.5
		checks["ansi-"+ansi+" on bad-tint"] = 4.5
	}
	for _, tint := range []string{"blue", "teal", "green", "olive", "amber", "rose", "violet", "slate"} {
		checks["on-"+tint+" on "+tint] = 6.1
	}
	for _, series := range []string{"a", "b", "c", "d", "e", "f"} {
		checks["series-"+series+" on surface"] = 3
		checks["series-"+series+" on canvas"] = 3
	}
	for check, limit := range checks {
		front, ground, _ := strings.Cut(check, " on ")
		for i, theme := range []string{"light", "dark"} {
			if colours[front][i] == "" || colours[ground][i] == "" {
				t.Errorf("%s: a token is missing", check)
				continue
			}
			a, b := luminance(t, colours[front][i]), luminance(t, colours[ground][i])
			if ratio := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); ratio < limit {
				t.Errorf("%s in %s is %.2f, less than %.1f", check, theme, ratio, limit)
			}
		}
	}
}

// The header is of ink in both themes: what is in it has its dark value.
func TestContrastOnInk(t *testing.T) {
	t.Parallel()
	ink := regexp.MustCompile(`(?m)^ {4}--ink: (#[0-9a-f]{6});`).FindStringSubmatch(stylesheet(t))
	if ink == nil {
		t.Fatal("--ink is missing")
	}
	colours := tokens(t)
	for name, limit := range map[string]float64{"text": 13.3, "muted": 7.2, "accent": 7.4, "edge": 3.9, "ok": 4.5, "warn": 4.5, "bad": 4.5} {
		if ratio := (luminance(t, colours[name][1]) + 0.05) / (luminance(t, ink[1]) + 0.05); ratio < limit {
			t.Errorf("%s on ink is %.2f, less than %.1f", name, ratio, limit)
		}
	}
}

// The figures that the design system prints must be those of the stylesheet.
func TestContrastFigures(t *testing.T) {
	t.Parallel()
	colours := tokens(t)
	for check, want := range map[string]string{
		"text on surface": "15.9 / 13.9", "muted on canvas": "6.0 / 8.2", "accent on sunken": "5.3 / 8.8", "edge on surface": "3.6 / 4.1",
		"ok on ok-tint": "5.5 / 7.7", "bad on bad-tint": "5.6 / 7.7", "idle on idle-tint": "5.6 / 6.4",
	} {
		front, ground, _ := strings.Cut(check, " on ")
		var ratios [2]float64
		for i := range ratios {
			a, b := luminance(t, colours[front][i]), luminance(t, colours[ground][i])
			ratios[i] = math.Floor((math.Max(a, b)+0.05)/(math.Min(a, b)+0.05)*10) / 10
		}
		if got := fmt.Sprintf("%.1f / %.1f", ratios[0], ratios[1]); got != want {
			t.Errorf("%s is %s, documented as %s", check, got, want)
		}
	}
}

// Components use tokens only, and each theme pair is written once.
func TestNoRawColoursOutsideTokens(t *testing.T) {
	t.Parallel()
	css := stylesheet(t)
	start, end := strings.Index(css, "@layer tokens {"), strings.Index(css, "@layer base {")
	if start < 0 || end < start {
		t.Fatal("the layers tokens and base are not where they were")
	}
	for _, found := range hexCode.FindAllString(css[:start]+css[end:], -1) {
		t.Errorf("%s outside the tokens", found)
	}
	used := regexp.MustCompile(`var\(--([a-z0-9-]+)`).FindAllStringSubmatch(css, -1)
	for _, m := range used {
		if !strings.Contains(css, "--"+m[1]+":") {
			t.Errorf("--%s is used and never defined", m[1])
		}
	}
}
