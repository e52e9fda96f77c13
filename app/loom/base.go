package loom

import (
	"bytes"
	"encoding/base64"
	"fmt"
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
	errs = append(errs, CheckLabels(b.Labels)...)
	switch scheme := strings.ToLower(urlScheme(b.Icon)); scheme {
	case "", "http", "https":
	case "data":
		if _, _, own := b.OwnIcon(); !own {
			errs = append(errs, FieldError{"icon", fmt.Sprintf("An own icon is a PNG or SVG of at most %d KiB: “data:image/png;base64,…” or “data:image/svg+xml;base64,…”.", maxIcon>>10)})
		}
	default:
		errs = append(errs, FieldError{"icon", fmt.Sprintf("An icon is a plain name, or a reference that begins with http:, https: or data:image/; this one is of the scheme “%.30s”.", scheme)})
	}
	return errs
}

// maxIcon is the largest picture of an entry, in bytes.
const maxIcon = 32 << 10

// OwnIcon returns the picture that an entry brings as its icon, with its media type, and whether
// it brings one: a PNG or an SVG in a data: reference.
func (b *Base) OwnIcon() (mediaType string, picture []byte, own bool) {
	rest, isImage := strings.CutPrefix(b.Icon, "data:")
	mediaType, data, isBase64 := strings.Cut(rest, ";base64,")
	if !isImage || !isBase64 || len(data) > base64.StdEncoding.EncodedLen(maxIcon) {
		return "", nil, false
	}
	picture, err := base64.StdEncoding.DecodeString(data)
	switch {
	case err != nil || len(picture) > maxIcon:
		return "", nil, false
	case mediaType == "image/png" && bytes.HasPrefix(picture, []byte("\x89PNG\r\n\x1a\n")):
	case mediaType == "image/svg+xml" && utf8.Valid(picture) && bytes.Contains(picture, []byte("<svg")):
	default:
		return "", nil, false
	}
	return mediaType, picture, true
}

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
