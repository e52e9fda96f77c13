package page

import (
	"bytes"
	"encoding/json"
	"strings"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/ui"
)

// PrettyJSON writes a value for people: indented, and with characters such as "&"
// as they are.
func PrettyJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return "" // entries are made of JSON
	}
	return strings.TrimRight(b.String(), "\n")
}

// TreeOf gives a value as maps and slices, numbers as they are written.
func TreeOf(v any) any {
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return ParseTree(body)
}

// ParseTree reads JSON as maps and slices; nil for what is none, or nested too deep.
func ParseTree(body []byte) any {
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

// ChangesOf shows a comparison: paths as people write them, long values cut.
func ChangesOf(found []catalog.Difference) []ui.ChangeModel {
	signs := map[catalog.Sign]ui.ChangeSign{catalog.SignAdded: ui.SignCreate, catalog.SignChanged: ui.SignChange, catalog.SignRemoved: ui.SignRemove}
	var changes []ui.ChangeModel
	for _, d := range found {
		c := ui.ChangeModel{Sign: signs[d.Sign], Name: PlainPath(d.Path)}
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

// PlainPath writes a JSON pointer as field errors do: "links[0].url".
func PlainPath(pointer string) string {
	path := ""
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		if path != "" && part != "" && strings.Trim(part, "0123456789") == "" {
			path += "[" + part + "]"
			continue
		}
		path = Member(path, part)
	}
	return path
}

// Member appends a member to the path of a document.
func Member(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// LongestValue is how much of a value a line of differences shows, in characters.
const LongestValue = 120

// CompactJSON writes a value as JSON in one line, "" for what is none.
func CompactJSON(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(body)
}

func short(v any) string {
	text := []rune(CompactJSON(v))
	if len(text) > LongestValue {
		return string(text[:LongestValue]) + "…"
	}
	return string(text)
}
