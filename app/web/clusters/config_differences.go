package clusters

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/ui"
)

// configLines is how many differences of two configs are listed.
const configLines = 200

// configDiffs finds what differs between configs. All those of a page share one: the lines
// of their texts are compared up to one sum.
type configDiffs struct {
	// object is what the lines say that they are about, most how many of them are listed of
	// two configs; the others are counted.
	object string
	most   int
	lines  page.LineBudget
}

func newConfigDiffs(object string, most int) *configDiffs {
	return &configDiffs{object: object, most: most, lines: page.MaxDiffCells}
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
	row := c.lines.ConfigChange(sign, configPath(c.path), old, now)
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
