package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/ui"
)

// prettyJSON writes a value for people: indented, and with characters such as "&"
// as they are.
func prettyJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return "" // entries are made of JSON
	}
	return strings.TrimRight(b.String(), "\n")
}

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
	return prettyJSON(draft), nil
}

// treeOf gives a value as maps and slices, numbers as they are written.
func treeOf(v any) any {
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return parseTree(body)
}

// parseTree reads JSON as maps and slices; nil for what is none, or nested too deep.
func parseTree(body []byte) any {
	if loom.ScanJSON(body, 0) != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return nil
	}
	return tree
}

// changesOf shows a comparison: paths as people write them, long values cut.
func changesOf(found []catalog.Difference) []ui.ChangeModel {
	signs := map[catalog.Sign]ui.ChangeSign{catalog.SignAdded: ui.SignCreate, catalog.SignChanged: ui.SignChange, catalog.SignRemoved: ui.SignRemove}
	var changes []ui.ChangeModel
	for _, d := range found {
		c := ui.ChangeModel{Sign: signs[d.Sign], Name: plainPath(d.Path)}
		if d.Sign != catalog.SignAdded {
			c.Old = short(d.Old)
		}
		if d.Sign != catalog.SignRemoved {
			c.New = short(d.New)
		}
		changes = append(changes, c)
	}
	return changes
}

// plainPath writes a JSON pointer as field errors do: "links[0].url".
func plainPath(pointer string) string {
	path := ""
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		if path != "" && part != "" && strings.Trim(part, "0123456789") == "" {
			path += "[" + part + "]"
			continue
		}
		path = member(path, part)
	}
	return path
}

func member(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// longestValue is how much of a value a line of differences shows, in characters.
const longestValue = 120

func compact(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(body)
}

func short(v any) string {
	text := []rune(compact(v))
	if len(text) > longestValue {
		return string(text[:longestValue]) + "…"
	}
	return string(text)
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
			at := member(path, key)
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
