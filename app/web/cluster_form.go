package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/httpx"
	"loom/app/lifecycle"
	"loom/app/loom"
)

// fieldPrefix is what names of provider fields begin with, in forms as in errors.
const fieldPrefix = "providerFields."

// createForm is the form for a new cluster as it was sent, every value as text, so
// that nothing typed is lost however wrong it is.
type createForm struct {
	Template, Name, Machines, Description   string
	Provider, Hardware, Image               string
	Lease, DNSSuffix, OnFailure, Config     string
	Labels                                  string
	Services                                []string
	ServicesShown, Advanced                 bool // the services were shown, the advanced part is open
	Fields                                  map[string]string
	For, ForProvider, Suggested, Do, Change string
}

func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	httpx.LimitBody(w, r)
	if err := r.ParseForm(); err != nil {
		return nil, httpx.BodyError(err, "The form could not be read.")
	}
	return r.PostForm, nil
}

func readCreateForm(v url.Values) createForm {
	text := func(name string) string { return strings.TrimSpace(v.Get(name)) }
	f := createForm{
		Template: text("clusterTemplate"), Name: text("name"), Machines: text("numMachines"), Description: text("description"),
		Provider: text("provider"), Hardware: text("hardwaretype"), Image: text("imagetype"), Lease: text("initialLeaseDuration"),
		DNSSuffix: text("dnsSuffix"), OnFailure: text("onFailure"), Config: text("config"), Services: v["services"], Labels: text("labels"),
		ServicesShown: v.Get("servicesShown") != "", Fields: map[string]string{},
		For: v.Get("for"), ForProvider: v.Get("forProvider"), Suggested: v.Get("suggested"), Do: v.Get("do"), Change: v.Get("suggest"), Advanced: v.Get("advanced") != "",
	}
	for name := range v {
		if field, ok := strings.CutPrefix(name, fieldPrefix); ok {
			f.Fields[field] = v.Get(name)
		}
	}
	return f
}

// input is the request that the form makes, with what cannot be read at all.
func (f *createForm) input(facts *lifecycle.TemplateFacts) (loom.CreateInput, []loom.FieldError) {
	in := loom.CreateInput{
		Name: f.Name, Template: f.Template, Description: f.Description, Provider: f.Provider, HardwareType: f.Hardware,
		ImageType: f.Image, DNSSuffix: f.DNSSuffix, OnFailure: f.OnFailure, Services: slices.Clone(f.Services),
		LeaseMillis: loom.TemplateLease, ProviderFields: map[string]any{},
	}
	var errs []loom.FieldError
	for name, value := range f.Fields {
		if value != "" {
			in.ProviderFields[name] = value
		}
	}
	if f.Machines != "" {
		n, err := strconv.Atoi(f.Machines)
		if err != nil || n < 0 {
			errs = append(errs, loom.FieldError{Field: "numMachines", Message: "Give a whole number, such as 3."})
		}
		in.Machines = n
	}
	if f.Labels != "" {
		labels, wrong := readLabels(f.Labels)
		in.Labels, errs = labels, append(errs, wrong...)
	}
	if f.ServicesShown && len(f.Services) == 0 {
		errs = append(errs, loom.FieldError{Field: "services", Message: "Choose at least one service."})
	}
	if f.Lease != "" {
		millis, ok := parseLease(f.Lease)
		if !ok {
			errs = append(errs, loom.FieldError{Field: "initialLeaseDuration", Message: "Write a duration such as 7d, 12h or 1d 6h 30m; 0 is no limit."})
		} else {
			in.LeaseMillis = millis
		}
	}
	if f.Config != "" && (facts == nil || !sameJSON(f.Config, facts.Config)) {
		config, problem := parseConfig(f.Config)
		if problem != "" {
			errs = append(errs, loom.FieldError{Field: "config", Message: problem})
		} else if strings.Contains(f.Config, loom.Redacted) {
			errs = append(errs, loom.FieldError{Field: "config", Message: "A hidden value (" + loom.Redacted + ") is not known here; write the value itself."})
		} else {
			in.Config = config
		}
	}
	return in, errs
}

// leaseUnits of a duration in forms, in milliseconds.
var leaseUnits = map[byte]int64{'w': 7 * 86_400_000, 'd': 86_400_000, 'h': 3_600_000, 'm': 60_000, 's': 1000}

// unitWords are other spellings of units, without the s of more than one.
var unitWords = map[string]byte{"week": 'w', "wk": 'w', "day": 'd', "hour": 'h', "hr": 'h', "minute": 'm', "min": 'm', "second": 's', "sec": 's'}

// leaseUnit gives the milliseconds of a unit, 0 for what is none.
func leaseUnit(word string) int64 {
	if len(word) == 1 {
		return leaseUnits[word[0]]
	}
	return leaseUnits[unitWords[strings.TrimSuffix(word, "s")]]
}

// parseLease reads "7d", "12h", "1d 6h 30m" or "2 hours"; "0" is for ever.
func parseLease(text string) (int64, bool) {
	text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
	if text == "0" {
		return 0, true
	}
	var total int64
	for text != "" {
		end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 || end > 9 {
			return 0, false
		}
		next := strings.IndexFunc(text[end:], func(r rune) bool { return r >= '0' && r <= '9' })
		if next < 0 {
			next = len(text) - end
		}
		unit := leaseUnit(text[end : end+next])
		if unit == 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(text[:end], 10, 64)
		if err != nil {
			return 0, false
		}
		total += n * unit
		text = text[end+next:]
	}
	return total, total > 0
}

// writeLease is the reverse of parseLease; the template's own is the empty text.
func writeLease(millis int64) string {
	if millis == loom.TemplateLease {
		return ""
	}
	if millis == 0 {
		return "0"
	}
	var parts []string
	for _, u := range "dhms" {
		if n := millis / leaseUnits[byte(u)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%c", n, u))
			millis %= leaseUnits[byte(u)]
		}
	}
	return strings.Join(parts, " ")
}

// parseConfig reads a JSON object, numbers as they are written, or says where it
// stops being one.
func parseConfig(text string) (map[string]any, string) {
	if err := loom.ScanJSON([]byte(text), 1); err != nil { // requests of the API have it as a member
		return nil, loom.AsError(err).Message
	}
	var config map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err := d.Decode(&config)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) || err == nil && config == nil:
		return nil, "The config is a JSON object: it begins with { and ends with }."
	case errors.Is(err, io.ErrUnexpectedEOF):
		line, column := configPosition(text, err)
		return nil, fmt.Sprintf("Line %d, column %d: the text ends before the object is closed.", line, column)
	case err != nil:
		line, column := configPosition(text, err)
		return nil, fmt.Sprintf("Line %d, column %d: this is not JSON (%s).", line, column, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, "Something follows the end of the object."
	}
	return config, ""
}

// configPosition is the line and column, from 1, at which JSON went wrong.
func configPosition(text string, err error) (line, column int) {
	at := len(text)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = min(max(int(syntax.Offset)-1, 0), len(text))
	}
	before := text[:at]
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
}

// configText writes a value for people; nothing becomes an empty object.
func configText(v map[string]any) string {
	if len(v) == 0 {
		return "{}"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return "{}" // what came from JSON goes back to it
	}
	return strings.TrimSpace(b.String())
}

func sameJSON(text string, v map[string]any) bool {
	given, problem := parseConfig(text)
	return problem == "" && configText(given) == configText(v)
}

// formOf is the form that makes a given request, to go on editing it.
func formOf(in loom.CreateInput, config map[string]any) createForm {
	f := createForm{
		Template: in.Template, Name: in.Name, Machines: strconv.Itoa(in.Machines), Description: in.Description, Provider: in.Provider,
		Hardware: in.HardwareType, Image: in.ImageType, Lease: writeLease(in.LeaseMillis), DNSSuffix: in.DNSSuffix,
		OnFailure: in.OnFailure, Services: in.Services, ServicesShown: len(in.Services) > 0, Fields: map[string]string{},
		For: in.Template, ForProvider: in.Provider, Labels: labelLines(in.Labels),
	}
	for name, value := range in.ProviderFields {
		f.Fields[name] = fmt.Sprint(value)
	}
	if in.Config != nil {
		f.Config = configText(in.Config)
	} else if config != nil {
		f.Config = configText(config)
	}
	return f
}
