package ui

import (
	"strings"

	"loom/app/loom"
)

// BrowserName gives the usual name of a browser and its system; the full description
// is beside it. The order matters: most browsers also claim to be others.
func BrowserName(agent string) string {
	find := func(names [][2]string) string {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return ""
	}
	name := find([][2]string{{"Firefox/", "Firefox"}, {"Edg", "Edge"}, {"OPR/", "Opera"}, {"Chrom", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}})
	system := find([][2]string{{"Android", "Android"}, {"iPhone", "iOS"}, {"iPad", "iOS"}, {"Windows", "Windows"}, {"Mac OS", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}})
	switch {
	case name == "" && agent == "":
		return "Unknown browser"
	case name == "":
		name, _, _ = strings.Cut(agent, " ")
	}
	if system == "" {
		return name
	}
	return name + " on " + system
}

// ScopeWords writes the scopes of a token for people.
func ScopeWords(scopes []loom.Scope) string {
	var words []string
	for _, s := range scopes {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}
