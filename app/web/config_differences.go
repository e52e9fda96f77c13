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

// configDiffs finds what differs between configs. All those of a page share one: the lines
// of their texts are compared up to one sum.
type configDiffs struct {
	// object is what the lines say that they are about, most how many of them are listed of
	// two configs; the others are counted.
	object string
	most   int
	lines  lineBudget
}

func newConfigDiffs(object string, most int) *configDiffs {
	return &configDiffs{object: object, most: most, lines: maxDiffCells}
}

// of gives what differs between two configs.
func (d *configDiffs) of(from, to map[string]any) clusterview.ConfigDiff {
	c := configComparison{configDiffs: d}
	c.compare(from, to)
	return clusterview.ConfigDiff{Rows: c.rows, More: c.more}
}

// configComparison compares two configs value by value, each with the path of its names.
// What came or went as a whole is listed by its parts.
type configComparison struct {
	*configDiffs
	path []string
	rows []ui.ChangeModel
	more int
}

func (c *configComparison) compare(from, to map[string]any) {
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, known := from[key]; !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		old, had := from[key]
		now, has := to[key]
		left, leftMap := old.(map[string]any)
		right, rightMap := now.(map[string]any)
		c.path = append(c.path, key)
		switch {
		case (leftMap || !had) && (rightMap || !has) && len(left)+len(right) > 0:
			c.compare(left, right)
		case had && has && loom.JSONText(old) == loom.JSONText(now):
		case !had:
			c.add(ui.SignCreate, nil, &now)
		case !has:
			c.add(ui.SignRemove, &old, nil)
		default:
			c.add(ui.SignChange, &old, &now)
		}
		c.path = c.path[:len(c.path)-1]
	}
}

// add lists a line about one value; nil stands for none.
func (c *configComparison) add(sign ui.ChangeSign, old, now *any) {
	if len(c.rows) >= c.most {
		c.more++
		return
	}
	row := c.lines.configChange(sign, configPath(c.path), old, now)
	row.Object = c.object
	c.rows = append(c.rows, row)
}

// configPath joins names to a path; one that would not be told from a path is quoted. What
// was stored before names had a limit is cut.
func configPath(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if b.Len() > loom.MaxConfigPath {
			break
		}
		name = loom.Cut(name, loom.MaxConfigPath)
		if name == "" || strings.ContainsAny(name, ". \t\n\"") {
			name = strconv.Quote(name)
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return loom.Cut(b.String(), loom.MaxConfigPath)
}

// configChange is a line about one value; nil stands for none.
func (b *lineBudget) configChange(sign ui.ChangeSign, path string, old, now *any) ui.ChangeModel {
	c := ui.ChangeModel{Sign: sign, Name: path}
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
	lines, more := b.diffLines(left, right, configFolded)
	if more > 0 {
		lines = append(lines, "… "+ui.Count(more, "more line", "more lines"))
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
