package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/ui"
)

const (
	// configLines is how many differences of two configs are listed.
	configLines = 200
	// configInline is up to how many characters a value stands in the line itself; a
	// longer one, and one of several lines, is folded below it.
	configInline = 100
	// configFolded bounds the lines of a folded value.
	configFolded = 400
)

// configDiff is what differs between two configs, the first configLines of it.
func configDiff(from, to map[string]any) clusterview.ConfigDiff {
	changes := configChanges("", from, to)
	for i := range changes {
		changes[i].Object = "" // the page is about nothing else
	}
	return clusterview.ConfigDiff{Rows: changes[:min(len(changes), configLines)], More: max(0, len(changes)-configLines)}
}

// configChanges compares two configs value by value, each with the path of its names.
// What came or went as a whole is listed by its parts.
func configChanges(path string, from, to map[string]any) []ui.ChangeModel {
	both := maps.Clone(to)
	if both == nil {
		both = map[string]any{}
	}
	maps.Copy(both, from)
	var changes []ui.ChangeModel
	for _, key := range slices.Sorted(maps.Keys(both)) {
		old, had := from[key]
		now, has := to[key]
		at := configPath(path, key)
		left, leftMap := old.(map[string]any)
		right, rightMap := now.(map[string]any)
		switch {
		case had && has && loom.JSONText(old) == loom.JSONText(now):
		case (leftMap || !had) && (rightMap || !has) && len(left)+len(right) > 0:
			changes = append(changes, configChanges(at, left, right)...)
		case !had:
			changes = append(changes, configChange(ui.SignCreate, at, nil, &now))
		case !has:
			changes = append(changes, configChange(ui.SignRemove, at, &old, nil))
		default:
			changes = append(changes, configChange(ui.SignChange, at, &old, &now))
		}
	}
	return changes
}

// configPath adds a name to a path; one that would not be told from a path is quoted.
func configPath(path, key string) string {
	if key == "" || strings.ContainsAny(key, ". \t\n\"") {
		key = strconv.Quote(key)
	}
	return strings.TrimPrefix(path+"."+key, ".")
}

// configChange is a line about one value; nil stands for none.
func configChange(sign ui.ChangeSign, path string, old, now *any) ui.ChangeModel {
	c := ui.ChangeModel{Sign: sign, Object: "config", Name: path}
	var left, right []string
	if old != nil {
		c.Old, left = configValue(*old)
	}
	if now != nil {
		c.New, right = configValue(*now)
	}
	if left == nil && right == nil {
		return c
	}
	if left == nil && old != nil {
		left = []string{c.Old}
	}
	if right == nil && now != nil {
		right = []string{c.New}
	}
	c.Old, c.New = linesWord(old != nil, left, c.Old), linesWord(now != nil, right, c.New)
	lines := diffLines(left, right)
	if more := len(lines) - configFolded; more > 0 {
		lines = append(lines[:configFolded:configFolded], "… "+ui.Count(more, "more line", "more lines"))
	}
	c.Lines = strings.Join(lines, "\n")
	return c
}

// linesWord is what stands in the line for a value of which the lines are folded below.
func linesWord(there bool, lines []string, text string) string {
	if !there || len(lines) < 2 {
		return text
	}
	return ui.Count(len(lines), "line", "lines")
}

// configValue writes a value for people: texts without quotes where nothing else could be
// meant. Of one that is long, or has several lines, it gives the lines as well; what stays
// in the line itself is cut.
func configValue(value any) (text string, lines []string) {
	text, plain := value.(string)
	if !plain {
		text = loom.JSONText(value)
	} else if !strings.Contains(text, "\n") && ambiguous(text) {
		text = strconv.Quote(text)
	}
	runes := []rune(text)
	if len(runes) <= configInline && !strings.Contains(text, "\n") {
		return text, nil
	}
	full := text
	if !plain {
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(text), "", "  ") == nil {
			full = indented.String()
		}
	}
	return string(runes[:min(len(runes), configInline)]) + "…", strings.Split(strings.TrimSuffix(full, "\n"), "\n")
}

// ambiguous says that a text without quotes could be taken for something else, or not be
// seen.
func ambiguous(text string) bool {
	return text == "" || strings.TrimSpace(text) != text || json.Valid([]byte(text))
}
