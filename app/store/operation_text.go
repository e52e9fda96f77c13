package store

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// wireTail is how many characters of output the wire format keeps of a failure.
const wireTail = 2048

// cleanText makes text that Postgres can hold: valid UTF-8 without NUL.
func cleanText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "")
}

// cleanJSON takes NUL out of marshalled JSON, which jsonb cannot hold.
func cleanJSON(body []byte) string {
	if !bytes.Contains(body, []byte(`\u0000`)) {
		return string(body)
	}
	// An escaped backslash before "u0000" is text, not NUL.
	var out strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' || i+1 == len(body) {
			out.WriteByte(body[i])
			continue
		}
		if bytes.HasPrefix(body[i:], []byte(`\u0000`)) {
			i += 5
			continue
		}
		out.Write(body[i : i+2])
		i++
	}
	return out.String()
}

// tail keeps the last wireTail characters, with the mark of the wire format
// where something was cut.
func tail(s string) string {
	s = cleanText(s)
	if utf8.RuneCountInString(s) <= wireTail {
		return s
	}
	runes := []rune(s)
	return "[snipped]" + string(runes[len(runes)-wireTail:])
}
