package form

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/formview"
	"loom/views/ui"
)

// JSON is a field for a free JSON value, such as a template's config.
type JSON struct {
	Path        Path
	Label, Help string
	Rows        int
	// Object refuses what is no object.
	Object bool
}

// Read implements Part.
func (j JSON) Read(in *Input) {
	given, posted := in.Get(j.Path.String())
	if !posted || given == in.Doc.JSON(j.Path) {
		return
	}
	if strings.TrimSpace(given) == "" {
		in.Doc.Delete(j.Path)
		return
	}
	v, err := parseValue(given, len(j.Path))
	if err != nil {
		in.Fail(j.Path, given, syntaxMessage(given, err))
		return
	}
	if _, isObject := v.(*object); j.Object && !isObject {
		in.Fail(j.Path, given, noObject)
		return
	}
	in.Doc.Set(j.Path, v)
}

// ParseObject reads an object that has within objects and lists around it, numbers as they
// are written, or says what is wrong with the text.
func ParseObject(text string, within int) (map[string]any, string) {
	v, err := parseValue(text, within)
	if err != nil {
		return nil, syntaxMessage(text, err)
	}
	var members map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if _, isObject := v.(*object); !isObject || d.Decode(&members) != nil {
		return nil, noObject
	}
	return members, ""
}

const noObject = "This is a JSON object: it begins with { and ends with }."

// PlaceOf returns the line and column with which a message about JSON begins, 0 for none.
func PlaceOf(message string) (line, column int) {
	if n, err := fmt.Sscanf(message, "Line %d, column %d", &line, &column); n < 2 || err != nil {
		return 0, 0
	}
	return line, column
}

// syntaxMessage says where a text stops being JSON.
func syntaxMessage(text string, err error) string {
	if errors.Is(err, loom.Invalid) {
		return loom.AsError(err).Message
	}
	offset := len(text)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = int(syntax.Offset)
	}
	// The decoder counts from the token that it could not take; the whole text says
	// it better.
	var any any
	if whole := json.Unmarshal([]byte(text), &any); errors.As(whole, &syntax) {
		offset, err = int(syntax.Offset), whole
	}
	before := text[:max(0, min(offset-1, len(text)))]
	place := fmt.Sprintf("Line %d, column %d: ", strings.Count(before, "\n")+1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))+1)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "unexpected end") {
		return place + "the text ends before the value is closed."
	}
	return place + "this is not JSON (" + strings.TrimPrefix(err.Error(), "json: ") + ")."
}

// Show implements Part.
func (j JSON) Show(out *Output) templ.Component {
	m := ui.FieldModel{Name: j.Path.String(), Label: j.Label, Help: j.Help, Kind: ui.FieldJSON, Rows: j.Rows, Optional: true, Value: out.Doc.JSON(j.Path)}
	m.ID = out.ID(m.Name)
	m.Error = out.Claim(j.Path, m.ID, j.Label)
	if raw, failed := out.Raw(j.Path); failed {
		m.Value = raw
		m.ErrorLine, m.ErrorColumn = PlaceOf(m.Error)
	}
	return ui.Field(m)
}

// Duration is a field for a time span, kept in milliseconds.
type Duration struct {
	Path        Path
	Label, Help string
	// Zero says what 0, and nothing, mean: "no limit".
	Zero string
	// Parse reads "7d" or "1d 6h" as milliseconds, Write is its reverse, and Say the
	// meaning in words.
	Parse func(text string) (int64, bool)
	Write func(millis int64) string
	Say   func(millis int64) string
}

func (d Duration) shown(doc *Doc) (text string, millis int64, ok bool) {
	text = doc.Text(d.Path)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return d.Write(n), n, true
	}
	millis, ok = d.Parse(text)
	return text, millis, ok
}

// Read implements Part.
func (d Duration) Read(in *Input) {
	given, posted := in.Get(d.Path.String())
	shown, _, _ := d.shown(in.Doc)
	given = strings.TrimSpace(given)
	if !posted || given == shown {
		return
	}
	if given == "" {
		in.Doc.Set(d.Path, 0)
		return
	}
	millis, ok := d.Parse(given)
	if !ok {
		in.Fail(d.Path, given, "Write a duration such as 7d, 12h or 1d 6h 30m; 0 is "+d.Zero+".")
		return
	}
	in.Doc.Set(d.Path, millis)
}

// Show implements Part.
func (d Duration) Show(out *Output) templ.Component {
	m := ui.FieldModel{Name: d.Path.String(), Label: d.Label, Help: d.Help, Optional: true, Width: "s", Autocomplete: "off", Placeholder: "0"}
	m.ID = out.ID(m.Name)
	m.Error = out.Claim(d.Path, m.ID, d.Label)
	text, millis, ok := d.shown(out.Doc)
	m.Value = text
	if raw, failed := out.Raw(d.Path); failed {
		m.Value, ok = raw, false
	}
	meaning := "" // what zero means is said once, above the fields
	if ok && millis > 0 {
		meaning = "Means " + d.Say(millis) + "."
	}
	m.Echo = m.ID + "-echo"
	return formview.Echoing(m, meaning)
}

// Pairs are rows of key and value: the members of an object that no other field
// shows. Values are texts; one that is not changed stays as it was written.
type Pairs struct {
	Path         Path
	Legend, Help string
	Noun         string
	// Not are the keys that other fields show.
	Not []string
	// Hidden reports keys whose value must not be shown; it can only be replaced.
	Hidden     func(key string) bool
	KeyLabel   string
	ValueLabel string
	// AddLabel is the text of the button, instead of “Add” and the noun.
	AddLabel string
}

func (p Pairs) rowPath(i int) Path { return p.Path.To("#", i) }

type pair struct{ key, value string }

// shown gives the rows, a blank one for each that was added.
func (p Pairs) shown(doc *Doc, blanks int) []pair {
	var rows []pair
	for _, key := range doc.Keys(p.Path) {
		if key == "" || contains(p.Not, key) {
			continue
		}
		text, ok := doc.scalar(p.Path.To(key))
		if !ok {
			text = strings.Join(strings.Fields(doc.JSON(p.Path.To(key))), " ")
		}
		if p.Hidden != nil && p.Hidden(key) {
			text = ""
		}
		rows = append(rows, pair{key, text})
	}
	for range blanks {
		rows = append(rows, pair{})
	}
	return rows
}

func contains(list []string, text string) bool {
	for _, t := range list {
		if t == text {
			return true
		}
	}
	return false
}

func blanksName(p Path) string { return p.String() + "#blank" }

// Read implements Part.
func (p Pairs) Read(in *Input) {
	blanks, _ := strconv.Atoi(in.Values.Get(blanksName(p.Path)))
	before := p.shown(in.Doc, max(0, min(blanks, maxBlanks)))
	given := map[string]bool{}
	for i, old := range before {
		at := p.rowPath(i)
		key, posted := in.Get(at.To("key").String())
		val, _ := in.Get(at.To("value").String())
		if key = strings.TrimSpace(key); key == strings.TrimSpace((Field{}).oneLine(old.key)) {
			key = old.key
		}
		switch {
		case !posted:
			given[old.key] = true
			continue
		case in.Does("remove", at) || key == "" && (old.key != "" || val == ""):
			if old.key != "" {
				in.Doc.Delete(p.Path.To(old.key))
			}
			continue
		case key == "":
			in.Fail(at.To("key"), "", "Give the value “"+cutText(val)+"” a name, or remove it.")
			in.raw[at.To("value").String()] = val
			continue
		case given[key] || contains(p.Not, key) || key != old.key && in.Doc.Has(p.Path.To(key)):
			in.Fail(at.To("key"), key, "“"+cutText(key)+"” is given twice; each name can have one value.")
			in.raw[at.To("value").String()] = val
			continue
		}
		given[key] = true
		if old.key != "" && key != old.key {
			in.Doc.Rename(p.Path, old.key, key)
		}
		if old.key == "" || val != (Field{}).oneLine(old.value) {
			in.Doc.Set(p.Path.To(key), strings.TrimSpace(val))
		}
	}
	if in.Does("add", p.Path.To("#")) {
		in.Added(p.Path.To("#"))
	}
}

// maxBlanks bounds the rows that wait for a name.
const maxBlanks = 100

func cutText(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}

// Show implements Part.
func (p Pairs) Show(out *Output) templ.Component {
	m := formview.PairsModel{ID: out.ID("pairs-" + p.Path.String()), Legend: p.Legend, Help: p.Help, KeyLabel: p.KeyLabel, ValueLabel: p.ValueLabel, BlanksName: blanksName(p.Path)}
	rows := p.shown(out.Doc, 0)
	named := len(rows)
	// Rows that could not be taken are shown again after the others.
	for i := named; i < named+maxBlanks; i++ {
		if _, failed := out.Raw(p.rowPath(i).To("key")); failed {
			rows = append(rows, make([]pair, i+1-len(rows))...)
		}
	}
	if out.fresh == p.Path.To("#").String() {
		rows = append(rows, pair{})
	}
	m.Blanks = len(rows) - named
	for i, row := range rows {
		at := p.rowPath(i)
		title := p.Noun + " " + itoa(i+1)
		if row.key != "" {
			title = p.Noun + " " + row.key
		}
		key := ui.FieldModel{Name: at.To("key").String(), Label: p.KeyLabel + " of " + lowerFirst(title), LabelHidden: true, Value: row.key, Mono: true, Optional: true, Width: "full", Autocomplete: "off"}
		val := ui.FieldModel{Name: at.To("value").String(), Label: p.ValueLabel + " of " + lowerFirst(title), LabelHidden: true, Value: row.value, Mono: true, Optional: true, Width: "full", Autocomplete: "off"}
		key.ID, val.ID = out.ID(key.Name), out.ID(val.Name)
		if p.Hidden != nil && row.key != "" && p.Hidden(row.key) {
			val.Kind, val.Placeholder = ui.FieldPassword, "not shown; type to replace"
		}
		key.Error = out.Claim(at.To("key"), key.ID, title)
		if row.key != "" {
			val.Error = out.Claim(p.Path.To(row.key), val.ID, title)
		}
		if raw, failed := out.Raw(at.To("key")); failed {
			key.Value = raw
			val.Value, _ = out.Raw(at.To("value"))
		}
		key.Autofocus = row.key == "" && out.fresh == p.Path.To("#").String() && i == len(rows)-1
		remove := out.Step(ui.ButtonModel{Label: "Remove " + lowerFirst(title), Icon: "trash", IconOnly: true, Small: true, Kind: ui.Quiet}, "remove", at, m.ID)
		m.Rows = append(m.Rows, formview.PairRow{Key: key, Value: val, Remove: remove})
	}
	m.Add = out.Step(ui.ButtonModel{Label: cmp.Or(p.AddLabel, "Add "+lowerFirst(p.Noun)), Icon: "plus", Small: true, Kind: ui.Quiet}, "add", p.Path.To("#"), m.ID)
	return formview.Pairs(m)
}
