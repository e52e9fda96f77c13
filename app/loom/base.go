package loom

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel is the longest label, in characters.
const maxLabel = 255

// validate checks what all kinds of entries share.
func (b *Base) validate() []FieldError {
	errs := CheckName("name", b.Name)
	if n := utf8.RuneCountInString(b.Label); n > maxLabel {
		errs = append(errs, FieldError{"label", fmt.Sprintf("A label has at most %d characters; this one has %d.", maxLabel, n)})
	}
	if scheme := urlScheme(b.Icon); scheme != "" && !iconScheme.MatchString(urlStart(b.Icon)) {
		errs = append(errs, FieldError{"icon", fmt.Sprintf("An icon is a plain name, or a reference that begins with http:, https: or data:image/; this one is of the scheme “%.30s”.", scheme)})
	}
	return errs
}

var iconScheme = regexp.MustCompile(`(?i)^(https?:|data:image/)`)

// urlStart is a reference as browsers read it: without blanks and control
// characters, which they skip.
func urlStart(reference string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.IsSpace(r) {
			return -1
		}
		return r
	}, reference)
}

// urlScheme gives the scheme of a reference, "" for one without.
func urlScheme(reference string) string {
	scheme, _, found := strings.Cut(urlStart(reference), ":")
	if !found || !linkScheme.MatchString(scheme) {
		return ""
	}
	return scheme
}
