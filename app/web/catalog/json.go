package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
)

// draftOf is the document that the editor starts with: without what is given on
// saving and what is only shown. Members keep the order of the type, which is
// that of the documentation.
func draftOf(kind loom.EntityKind, entry loom.Entry) (string, error) {
	body, err := json.Marshal(entry)
	if err != nil {
		return "", err
	}
	draft, err := loom.ReadEntry(kind, body)
	if err != nil {
		return "", err
	}
	draft.Meta().Version = 0
	if p, isProvider := draft.(*loom.Provider); isProvider {
		p.Sealed = nil
	}
	return page.PrettyJSON(draft), nil
}

// unknownMembers lists the members of a draft that are not in the entry read from
// it: they would be dropped. What is empty, and what is written in another way,
// is not listed.
func unknownMembers(draft, entry any) []string { return unknown(nil, "", draft, entry) }

func unknown(found []string, path string, draft, entry any) []string {
	switch d := draft.(type) {
	case map[string]any:
		e, ok := entry.(map[string]any)
		if !ok {
			return found
		}
		for _, key := range slices.Sorted(maps.Keys(d)) {
			at := page.Member(path, key)
			kept, there := e[key]
			switch {
			case path == "" && (key == "version" || key == "sealed"):
			case there:
				found = unknown(found, at, d[key], kept)
			case !isEmpty(d[key]) && !renamed(at):
				found = append(found, at)
			}
		}
	case []any:
		e, ok := entry.([]any)
		if !ok || len(e) != len(d) {
			return found
		}
		for i := range d {
			found = unknown(found, fmt.Sprintf("%s[%d]", path, i), d[i], e[i])
		}
	}
	return found
}

// renamed are old spellings that are kept under another name.
func renamed(at string) bool {
	return strings.HasPrefix(at, "provisioner.actions.") && strings.HasSuffix(at, ".fields.data")
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, item := range v {
			if !isEmpty(item) {
				return false
			}
		}
		return true
	}
	return false
}

// keyAndValue finds members with a plain value in a text that need not be JSON
// yet; a text that is not closed ends with its line.
var keyAndValue = regexp.MustCompile(`"((?:[^"\\\n]|\\.)*)"(\s*:\s*)("(?:[^"\\\n]|\\.)+"?|-?[0-9][0-9.eE+-]*)`)

// withoutSecrets empties the values of sensitive members of a draft, so that it
// can be shown again, and gives their names. An empty one keeps what is stored.
func withoutSecrets(draft string, sensitive func(field string) bool) (clean string, emptied []string) {
	clean = keyAndValue.ReplaceAllStringFunc(draft, func(found string) string {
		parts := keyAndValue.FindStringSubmatch(found)
		if !sensitive(parts[1]) {
			return found
		}
		emptied = append(emptied, parts[1])
		return `"` + parts[1] + `"` + parts[2] + `""`
	})
	return clean, emptied
}
