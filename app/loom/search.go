package loom

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// CountLimit is how far lists count what matches; beyond it only "more" is said.
const CountLimit = 10_000

// MaxWords are the words of a search at most: each one costs a look at every row.
const MaxWords = 10

// SearchWords gives the words of a search, in lower case. Invalid, at the field q, for more
// than MaxWords.
func SearchWords(text string) ([]string, error) {
	words := strings.Fields(strings.ToLower(text))
	if len(words) > MaxWords {
		return nil, InvalidFields([]FieldError{{Field: "q", Message: fmt.Sprintf("Search for at most %d words.", MaxWords)}})
	}
	return words, nil
}

// SearchTerm is a "field:value" of a search. Not is one with "-" before it: what it
// names is left out.
type SearchTerm struct {
	Field string
	// Values are the texts between commas; one of them has to match.
	Values []string
	Not    bool
}

// ParseSearch splits what is typed into a search field: words, and terms such as
// status:failed, label:team=web or -owner:ana. Double quotes keep spaces together,
// also within a value. What looks like an address or a URL is a word. Invalid, at
// the field q, for a term of a field that is not in fields; those are listed.
func ParseSearch(text string, fields ...string) (words []string, terms []SearchTerm, err error) {
	for _, token := range searchTokens(text) {
		term, isTerm := searchTerm(token)
		if !isTerm {
			words = append(words, strings.ReplaceAll(token, `"`, ""))
			continue
		}
		if !slices.Contains(fields, term.Field) {
			hint := ""
			if near := Nearest(term.Field, fields); near != "" {
				hint = fmt.Sprintf(" Did you mean “%s:”?", near)
			}
			return nil, nil, InvalidFields([]FieldError{{Field: "q", Message: fmt.Sprintf(
				"There is no field “%s”.%s Fields are %s; to search for text with a colon, put it in double quotes.", term.Field, hint, strings.Join(fields, ", "))}})
		}
		if len(term.Values) == 0 {
			return nil, nil, InvalidFields([]FieldError{{Field: "q", Message: fmt.Sprintf("“%s:” needs a value, such as %s:name.", term.Field, term.Field)}})
		}
		terms = append(terms, term)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return words, terms, nil
}

// searchTokens splits at spaces that are not between double quotes.
func searchTokens(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(c rune) bool {
		if c == '"' {
			quoted = !quoted
		}
		return !quoted && unicode.IsSpace(c)
	})
}

// searchTerm reads "field:value"; the name of a field is of letters only.
func searchTerm(token string) (SearchTerm, bool) {
	name, value, found := strings.Cut(token, ":")
	name, not := strings.CutPrefix(name, "-")
	letters := name != "" && strings.IndexFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }) < 0
	if !found || !letters || strings.HasPrefix(value, "//") || strings.HasPrefix(value, ":") {
		return SearchTerm{}, false
	}
	if _, err := netip.ParseAddr(token); err == nil {
		return SearchTerm{}, false
	}
	term := SearchTerm{Field: strings.ToLower(name), Not: not}
	for part := range strings.SplitSeq(strings.ReplaceAll(value, `"`, ""), ",") {
		if part = strings.TrimSpace(part); part != "" {
			term.Values = append(term.Values, part)
		}
	}
	return term, true
}
