package lenient

import (
	"bytes"
	"encoding/json"
	"strings"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// Strict returns a JSON document as RFC 8259 has it, of one that the predecessor's reader,
// Gson, took as well: after a byte order mark, with comments, single quotes and names
// without quotes. Lines keep their numbers. Anything else stays as it is, and so does what
// is no JSON at all.
func Strict(body []byte) []byte {
	body = bytes.TrimPrefix(body, byteOrderMark)
	start := bytes.TrimLeft(body, " \t\r\n")
	if len(start) == 0 || !strings.ContainsRune("{[/#", rune(start[0])) || json.Valid(body) {
		return body
	}
	s := &strict{in: body, out: make([]byte, 0, len(body)+len(body)/8), word: -1}
	for s.at < len(s.in) {
		s.token()
	}
	return s.out
}

// strict copies a document and mends it on the way.
type strict struct {
	in, out []byte
	at      int // how far in is read
	// word and wordEnd are where in out the last token is, if it has no quotes, else word
	// is -1: it turns out to be a name at the colon that follows.
	word, wordEnd int
}

func (s *strict) token() {
	rest := s.in[s.at:]
	switch c := rest[0]; {
	case c == ' ', c == '\t', c == '\r', c == '\n':
		s.copy(1)
	case c == '#', bytes.HasPrefix(rest, []byte("//")):
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			s.at += end
			return
		}
		s.at = len(s.in)
	case bytes.HasPrefix(rest, []byte("/*")):
		end := bytes.Index(rest, []byte("*/"))
		if end < 0 {
			s.copy(len(rest)) // the reader names the place
			return
		}
		s.out = append(s.out, bytes.Repeat([]byte("\n"), bytes.Count(rest[:end], []byte("\n")))...)
		s.out = append(s.out, ' ')
		s.at += end + 2
	case c == '"', c == '\'':
		s.word = -1
		s.text(c)
	case c == ':' && s.word >= 0:
		name := append([]byte{'"'}, s.out[s.word:s.wordEnd]...)
		tail := append(append(name, '"'), s.out[s.wordEnd:]...)
		s.out = append(s.out[:s.word], tail...)
		s.word = -1
		s.copy(1)
	case inWord(c):
		s.word = len(s.out)
		for s.at < len(s.in) && inWord(s.in[s.at]) {
			s.copy(1)
		}
		s.wordEnd = len(s.out)
	default:
		s.word = -1
		s.copy(1)
	}
}

// text copies a text up to its closing quote and gives it double ones.
func (s *strict) text(quote byte) {
	s.out = append(s.out, '"')
	for s.at++; s.at < len(s.in); {
		c := s.in[s.at]
		switch {
		case c == quote:
			s.out = append(s.out, '"')
			s.at++
			return
		case c == '\\' && s.at+1 < len(s.in) && s.in[s.at+1] == '\'':
			s.out = append(s.out, '\'')
			s.at += 2
		case c == '\\' && s.at+1 < len(s.in):
			s.copy(2)
		case c == '"':
			s.out = append(s.out, '\\', '"')
			s.at++
		default:
			s.copy(1)
		}
	}
}

func (s *strict) copy(n int) {
	s.out = append(s.out, s.in[s.at:s.at+n]...)
	s.at += n
}

// inWord reports whether a name without quotes may hold a byte.
func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_$-.+", c) >= 0 || c >= 0x80
}
