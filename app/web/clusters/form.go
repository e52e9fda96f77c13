package clusters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// formModel makes the page of the form.
func (s *Server) formModel(actor loom.Actor, st *settled, errs ui.FormErrors, check clusterview.CheckPanel) clusterview.FormModel {
	m := clusterview.FormModel{Errors: errs, None: len(st.templates) == 0, MayMake: actor.May(loom.Publish, actor.InTenant()) == nil, Check: check, Restored: st.restored, Now: s.Now()}
	m.Template = ui.ChoiceModel{Name: "clusterTemplate", Legend: "Template", Filter: "Filter templates", Error: errs.For("clusterTemplate"), Attrs: formAgain()}
	for _, t := range st.templates {
		m.Template.Choices = append(m.Template.Choices, templateCard(t, st.form.Template))
	}
	m.Rest = restModel(st, errs)
	return m
}

// formAgain makes a control fetch what depends on it.
func formAgain() templ.Attributes {
	return templ.Attributes{
		"hx-post": clusterview.FormURL(), "hx-trigger": "change", "hx-include": "closest form",
		"hx-target": "#" + clusterview.FormRestID, "hx-swap": "outerHTML", "hx-sync": "closest form:replace",
	}
}

func templateCard(t loom.Template, chosen string) ui.Choice {
	c := ui.Choice{Value: t.Name, Label: t.Label, Description: t.Description, Checked: t.Name == chosen}
	if c.Label == "" {
		c.Label = t.Name
	}
	if t.Extends == nil && len(t.Includes) == 0 {
		c.Facts = []string{page.NodesRange(t.Constraints.Size.Bounds()), strings.Join(t.Defaults.Services, ", ")}
	}
	return c
}

func restModel(st *settled, errs ui.FormErrors) clusterview.FormRest {
	f, facts := st.form, st.facts
	m := clusterview.FormRest{
		For: f.For, ForProvider: f.ForProvider, Suggested: f.Suggested, Note: st.note,
		Name: ui.FieldModel{Name: "name", Label: "Name", Value: f.Name, Error: errs.For("name"), MaxLength: loom.MaxNameLength,
			Help: "Letters a to z, digits, “_”, “-” and “.”; it cannot be changed later.", Autocomplete: "off"},
		Machines: ui.FieldModel{Name: "numMachines", Label: "Number of nodes", Kind: ui.FieldNumber, Value: f.Machines,
			Min: "1", Error: errs.For("numMachines")},
		Description: ui.FieldModel{Name: "description", Label: "Description", Kind: ui.FieldTextarea, Rows: 2, Optional: true,
			Value: f.Description, Error: errs.For("description"), MaxLength: loom.MaxDescription},
	}
	if facts == nil {
		m.For = ""
		return m
	}
	low, high := facts.MinMachines, facts.MaxMachines
	m.Machines.Help = page.Capital(page.NodesRange(low, high)) + ", says the template."
	m.Machines.Min = strconv.Itoa(low)
	if high < loom.Unlimited {
		m.Machines.Max = strconv.Itoa(high)
	}
	m.Differs = differs(st)
	m.Open = openAdvanced(errs)
	m.Provider = providerField(st, errs)
	m.ProviderFields = providerFields(facts.ProviderFields, facts.Required, f.Fields, errs)
	resourcePickers(m.ProviderFields, facts)
	m.ProviderFields = append(m.ProviderFields, page.FixedFields(facts.FixedFields)...)
	m.Labels = ui.FieldModel{Name: "labels", Label: "Labels", Kind: ui.FieldTextarea, Rows: 2, Mono: true, Optional: true, Value: f.Labels, Error: errs.For("labels"),
		Help: "One key=value on a line, to find the cluster by."}
	m.Open = m.Open || f.Do == resetConfig || f.Advanced
	preferredHardware, preferredImages := page.PreferredTypes(&facts.Template)
	m.Hardware = page.TypeField("hardwaretype", "Hardware type", facts.HardwareTypes, f.Hardware, facts.Template.Defaults.HardwareType, preferredHardware, errs)
	m.Image = page.TypeField("imagetype", "Image type", facts.ImageTypes, f.Image, facts.Template.Defaults.ImageType, preferredImages, errs)
	m.Services = page.ServicePicker(facts, f.Services, errs)
	m.Lease = ui.FieldModel{Name: "initialLeaseDuration", Label: "Lease", Value: f.Lease, Optional: true, Width: "s", Help: leaseHelp(facts.Template.Administration.Lease),
		Error: errs.For("initialLeaseDuration"), Placeholder: "7d"}
	m.DNSSuffix = ui.FieldModel{Name: "dnsSuffix", Label: "DNS suffix", Value: f.DNSSuffix, Optional: true, Mono: true, Help: "What host names end with.",
		Error: errs.For("dnsSuffix"), Placeholder: facts.Template.Defaults.DNSSuffix}
	m.OnFailure = failureField("If the operation fails", f.OnFailure, facts.Template.Administration.OnFailure, errs)
	m.Config = configField(f.Config, errs)
	return m
}

// usualPolicy words what a template says of failures.
func usualPolicy(onFailure string) string {
	if onFailure == loom.OnFailureUndo {
		return "take it back"
	}
	return "keep it"
}

// openAdvanced says whether an error is in the advanced part.
func openAdvanced(errs ui.FormErrors) bool {
	return slices.ContainsFunc(errs.Items, func(e ui.FormError) bool {
		return e.Field != "" && !slices.Contains([]string{"name", "numMachines", "description", "clusterTemplate"}, e.Field)
	})
}

// differs says what was changed against the template, for the line that hides it.
func differs(st *settled) string {
	f, facts := st.form, st.facts
	d := facts.Template.Defaults
	var parts []string
	add := func(word string, changed bool) {
		if changed {
			parts = append(parts, word)
		}
	}
	services, usual := slices.Sorted(slices.Values(f.Services)), slices.Sorted(slices.Values(d.Services))
	add("provider", f.Provider != d.Provider)
	add("hardware type", f.Hardware != "")
	add("image type", f.Image != "")
	add("services", f.ServicesShown && !slices.Equal(services, usual))
	add("lease", f.Lease != "")
	add("DNS suffix", f.DNSSuffix != "")
	add("failure", f.OnFailure != "")
	add("labels", f.Labels != "")
	add("config", !sameJSON(f.Config, facts.Config))
	if len(parts) == 0 {
		return "as the template says"
	}
	return "changed: " + strings.Join(parts, ", ")
}

func providerField(st *settled, errs ui.FormErrors) ui.FieldModel {
	m := ui.FieldModel{Name: "provider", Label: "Provider", Kind: ui.FieldSelect, Error: errs.For("provider"), Attrs: formAgain(), Help: "Where the machines are made."}
	for _, p := range st.providers {
		o := ui.Option{Value: p.Name, Label: p.Name, Selected: p.Name == st.form.Provider}
		if p.Label != "" && p.Label != p.Name {
			o.Label = p.Label + " (" + p.Name + ")"
		}
		if p.Name == st.facts.Template.Defaults.Provider {
			o.Label += ", the template's"
		}
		m.Options = append(m.Options, o)
	}
	return m
}

// providerFields makes the controls for fields that a provider's plugin declares.
func providerFields(schemas map[string]loom.FieldSchema, required [][]string, given map[string]string, errs ui.FormErrors) []ui.FieldModel {
	var fields []ui.FieldModel
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[name]
		f := ui.FieldModel{Name: fieldPrefix + name, Label: schema.Label, Help: schema.Tip, Value: given[name], Error: errs.For(fieldPrefix + name), Optional: true}
		if f.Label == "" {
			f.Label = name
		}
		if _, typed := given[name]; !typed && schema.Default != nil {
			f.Value = fmt.Sprint(schema.Default)
		}
		// With several sets any one will do, so none of their fields is a must.
		f.Optional = len(required) != 1 || !slices.Contains(required[0], name)
		shape(&f, schema)
		fields = append(fields, f)
	}
	return fields
}

// shape gives a field the control of its type.
func shape(f *ui.FieldModel, schema loom.FieldSchema) {
	switch {
	case schema.IsSensitive():
		f.Kind, f.Autocomplete = ui.FieldPassword, "off"
	case schema.Type == "select":
		f.Kind = ui.FieldSelect
		if f.Optional {
			f.Options = append(f.Options, ui.Option{Value: "", Label: "not given"})
		}
		for _, o := range schema.Options {
			f.Options = append(f.Options, ui.Option{Value: o, Label: o, Selected: o == f.Value})
		}
	case schema.Type == "textarea":
		f.Kind = ui.FieldTextarea
	case schema.Type == "number":
		f.Kind = ui.FieldNumber
	case schema.Type == "checkbox":
		f.Kind, f.Checked = ui.FieldCheckbox, f.Value == "true" || f.Value == "on"
	}
}

// resetConfig is the button that puts the template's config back.
const resetConfig = "reset-config"

// saveDraft is the button that keeps the form for later.
const saveDraft = "draft"

// resourcePickers makes fields that name a plugin resource a choice of those there are; a
// text that may name one suggests them. One that is named and not there stays, so that the
// check can speak of it.
func resourcePickers(fields []ui.FieldModel, facts *clusters.TemplateFacts) {
	for i := range fields {
		f := &fields[i]
		schema := facts.ProviderFields[strings.TrimPrefix(f.Name, fieldPrefix)]
		names, offered := facts.Resources[schema.ResourceType]
		if !offered || schema.IsSensitive() {
			continue
		}
		if schema.Type == "text" {
			for _, name := range names {
				f.Suggest = append(f.Suggest, ui.Option{Value: name})
			}
			continue
		}
		if schema.Type != "resource" {
			continue
		}
		if len(names) == 0 && f.Value == "" {
			f.Help = strings.TrimSpace(f.Help + " No resource of the type " + schema.ResourceType + " is in use yet; an administrator uploads and activates them.")
		}
		f.Kind = ui.FieldSelect
		f.Options = []ui.Option{{Label: "not given"}}
		for _, name := range names {
			f.Options = append(f.Options, ui.Option{Value: name, Label: name, Selected: name == f.Value})
		}
		if f.Value != "" && !slices.Contains(names, f.Value) {
			f.Options = append(f.Options, ui.Option{Value: f.Value, Label: f.Value + " (not in use)", Selected: true})
		}
	}
}

// configDifference is how the config of the form differs from the template's, nothing
// while it is no JSON.
func configDifference(st *settled) clusterview.ConfigDiff {
	if st.facts == nil {
		return clusterview.ConfigDiff{}
	}
	given, problem := parseConfig(st.form.Config)
	if problem != "" {
		return clusterview.ConfigDiff{}
	}
	return newConfigDiffs("config", configLines).of(st.facts.Config, given)
}

// maxLink is how long a link to a filled in form may be; browsers and proxies take
// that much.
const maxLink = 6000

// formLink leads to the form as it stands, without what is secret; empty when it would
// be too long.
func formLink(f createForm) string {
	v := url.Values{"for": {f.Template}, "forProvider": {f.ForProvider}, "clusterTemplate": {f.Template}, "services": f.Services}
	for name, value := range map[string]string{
		"name": f.Name, "numMachines": f.Machines, "description": f.Description, "provider": f.Provider, "hardwaretype": f.Hardware, "imagetype": f.Image,
		"initialLeaseDuration": f.Lease, "dnsSuffix": f.DNSSuffix, "onFailure": f.OnFailure, "labels": f.Labels, "config": linkConfig(f.Config),
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if f.ServicesShown {
		v.Set("servicesShown", "1")
	}
	link := route.ClusterNew() + "?" + v.Encode()
	if len(link) > maxLink {
		return ""
	}
	return link
}

// linkConfig is a config for an address: compact, what looks secret left out.
func linkConfig(text string) string {
	given, problem := parseConfig(text)
	if problem != "" {
		return ""
	}
	data, err := json.Marshal(masked(given))
	if err != nil {
		return ""
	}
	return string(data)
}

func leaseHelp(rule loom.LeaseRule) string {
	if rule.Initial == 0 && rule.Max == 0 {
		return "Such as 7d or 12h. Empty or 0 means no limit."
	}
	longest := rule.Initial
	if longest == 0 {
		longest = rule.Max
	}
	return "Such as 7d or 12h, at most " + loom.Duration(longest) + ". Empty takes the template's: " + loom.Duration(rule.Initial) + "."
}

func configField(text string, errs ui.FormErrors) ui.FieldModel {
	m := ui.FieldModel{Name: "config", Label: "Config", Kind: ui.FieldJSON, Value: text, Rows: 10, Optional: true, Error: errs.For("config"),
		Help: "A JSON object; what stands here is what is used. Texts may hold macros such as %host.service.nginx%. At most 256 KiB."}
	if m.Error != "" {
		// The sentence begins with the place when the text is no JSON.
		if n, err := fmt.Sscanf(m.Error, "Line %d, column %d", &m.ErrorLine, &m.ErrorColumn); n < 2 || err != nil {
			m.ErrorLine, m.ErrorColumn = 0, 0
		}
	}
	return m
}

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
func (f *createForm) input(facts *clusters.TemplateFacts) (loom.CreateInput, []loom.FieldError) {
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
		millis, ok := page.ParseLease(f.Lease)
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
		Hardware: in.HardwareType, Image: in.ImageType, Lease: page.WriteLease(in.LeaseMillis), DNSSuffix: in.DNSSuffix,
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
