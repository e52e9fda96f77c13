package clusters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// formModel makes the page of the form.
func (s *Server) formModel(actor loom.Actor, st *settled, errs ui.FormErrors, check clusterview.CheckPanel) clusterview.FormModel {
	m := clusterview.FormModel{Errors: errs, None: len(st.templates) == 0, MayMake: actor.May(loom.Publish, actor.InTenant()) == nil, Check: check, Restored: st.restored}
	m.Template = ui.ChoiceModel{Name: "clusterTemplate", Legend: "Template", Filter: "Filter templates", Error: errs.For("clusterTemplate"), Attrs: formAgain()}
	for _, t := range st.templates {
		m.Template.Choices = append(m.Template.Choices, templateCard(t, st.form.of("clusterTemplate")))
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
	c := ui.Choice{Value: t.Name, Label: t.Label, Description: t.Description, Checked: t.Name == chosen, Icon: ui.IconOf(loom.KindTemplate, &t.Base, "cluster")}
	if c.Label == "" {
		c.Label = t.Name
	}
	if t.Extends == nil && len(t.Includes) == 0 {
		c.Facts = t.Defaults.Services
	}
	return c
}

func restModel(st *settled, errs ui.FormErrors) clusterview.FormRest {
	f, facts := &st.form, st.facts
	m := clusterview.FormRest{
		For: f.For, ForProvider: f.ForProvider, Suggested: f.Suggested,
		Name: ui.FieldModel{Name: "name", Label: "Name", Value: f.of("name"), Error: errs.For("name"), MaxLength: loom.MaxNameLength,
			Width: "m", Autocomplete: "off"},
		Machines: ui.FieldModel{Name: "numMachines", Label: "Nodes", Value: f.of("numMachines"), Width: "xs",
			Autocomplete: "off", MaxLength: 6, Error: errs.For("numMachines"), Attrs: templ.Attributes{"inputmode": "numeric"}},
		Description: ui.FieldModel{Name: "description", Label: "Description", Kind: ui.FieldTextarea, Rows: 2, Optional: true,
			Value: f.of("description"), Error: errs.For("description"), MaxLength: loom.MaxDescription},
	}
	if facts == nil {
		m.For = ""
		return m
	}
	low, high := facts.MinMachines, facts.MaxMachines
	m.Machines.Help = sizeRange(low, high)
	m.Differs = differs(st)
	m.Open = openAdvanced(errs)
	m.Provider = providerField(st, errs)
	m.ProviderFields = providerFields(facts.ProviderFields, facts.Required, f.texts("providerFields"), errs)
	resourcePickers(m.ProviderFields, facts)
	m.ProviderFields = append(m.ProviderFields, page.FixedFields(facts.FixedFields)...)
	m.Labels = ui.FieldModel{Name: "labels", Label: "Labels", Kind: ui.FieldTextarea, Rows: 2, Mono: true, Optional: true, Value: f.labels(), Error: errs.For("labels"),
		Help: "One key=value on a line, to find the cluster by."}
	m.Open = m.Open || f.Do == resetConfig || f.Advanced
	preferredHardware, preferredImages := page.PreferredTypes(&facts.Template)
	m.Hardware = page.TypeField("hardwaretype", "Hardware type", facts.HardwareTypes, f.of("hardwaretype"), facts.Template.Defaults.HardwareType, preferredHardware, errs)
	m.Image = page.TypeField("imagetype", "Image type", facts.ImageTypes, f.of("imagetype"), facts.Template.Defaults.ImageType, preferredImages, errs)
	m.Services = page.ServicePicker(facts, f.services(), errs)
	m.Lease = ui.FieldModel{Name: "initialLeaseDuration", Label: "Lease", Value: f.lease(), Optional: true, Width: "s", Help: leaseHelp(facts.Template.Administration.Lease),
		Error: errs.For("initialLeaseDuration"), Placeholder: "7d"}
	m.DNSSuffix = ui.FieldModel{Name: "dnsSuffix", Label: "DNS suffix", Value: f.of("dnsSuffix"), Optional: true, Mono: true, Help: "What host names end with.",
		Error: errs.For("dnsSuffix"), Placeholder: facts.Template.Defaults.DNSSuffix}
	m.OnFailure = failureField("If the operation fails", f.of("onFailure"), facts.Template.Administration.OnFailure, errs)
	m.Settings, m.Config = st.settingsParts(errs)
	m.Open = m.Open || f.settings.asJSON
	return m
}

// sizeRange is "2–500".
func sizeRange(low, high int) string {
	switch {
	case high >= loom.Unlimited:
		return strconv.Itoa(low) + " or more"
	case low == high:
		return strconv.Itoa(low)
	}
	return strconv.Itoa(low) + "–" + strconv.Itoa(high)
}

// wrongSize says what the field of the nodes takes, where the template does not take what it holds.
func (st *settled) wrongSize() []loom.FieldError {
	if st.facts == nil {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(st.form.of("numMachines")))
	if err == nil && st.facts.MinMachines <= n && n <= st.facts.MaxMachines {
		return nil
	}
	return []loom.FieldError{{Field: "numMachines", Message: "Enter " + sizeRange(st.facts.MinMachines, st.facts.MaxMachines) + " nodes."}}
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
		return e.Field != "" && !strings.HasPrefix(e.Field, settingPrefix) && !slices.Contains([]string{"name", "numMachines", "clusterTemplate"}, e.Field)
	})
}

// differs says what was changed against the template, for the line that hides it.
func differs(st *settled) string {
	f, facts := &st.form, st.facts
	d := facts.Template.Defaults
	var parts []string
	add := func(word string, changed bool) {
		if changed {
			parts = append(parts, word)
		}
	}
	services, usual := slices.Sorted(slices.Values(f.services())), slices.Sorted(slices.Values(d.Services))
	add("provider", f.of("provider") != d.Provider)
	add("hardware type", f.of("hardwaretype") != "")
	add("image type", f.of("imagetype") != "")
	add("services", f.ServicesShown && !slices.Equal(services, usual))
	add("lease", f.lease() != "")
	add("DNS suffix", f.of("dnsSuffix") != "")
	add("failure", f.of("onFailure") != "")
	add("labels", f.labels() != "")
	add("config", !sameJSON(f.config(), facts.Config))
	if len(parts) == 0 {
		return "template default"
	}
	return "changed: " + strings.Join(parts, ", ")
}

func providerField(st *settled, errs ui.FormErrors) ui.FieldModel {
	m := ui.FieldModel{Name: "provider", Label: "Provider", Kind: ui.FieldSelect, Error: errs.For("provider"), Attrs: formAgain(), Help: "Where the machines are made."}
	for _, p := range st.providers {
		o := ui.Option{Value: p.Name, Label: p.Name, Selected: p.Name == st.form.of("provider")}
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
	given, problem := parseConfig(st.form.config())
	if problem != "" {
		return clusterview.ConfigDiff{}
	}
	secrets := loom.SecretKeysOf(st.chosen())
	return newConfigDiffs("config", configLines).of(secrets.Mask(st.facts.Config), secrets.Mask(given))
}

// maxLink is how long a link to a filled in form may be; browsers and proxies take
// that much.
const maxLink = 6000

// formLink leads to the form as it stands, without what is secret; empty when it would
// be too long.
func formLink(st *settled) string {
	f := st.form
	v := url.Values{"for": {f.of("clusterTemplate")}, "forProvider": {f.ForProvider}, "services": f.services()}
	for _, name := range []string{"clusterTemplate", "name", "numMachines", "description", "provider", "hardwaretype", "imagetype", "dnsSuffix", "onFailure"} {
		if text := f.of(name); text != "" || name == "clusterTemplate" {
			v.Set(name, text)
		}
	}
	for name, text := range map[string]string{"initialLeaseDuration": f.lease(), "labels": f.labels(), "config": linkConfig(f.config(), st.settings())} {
		if text != "" {
			v.Set(name, text)
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
func linkConfig(text string, declared []loom.ClusterParameter) string {
	given, problem := parseConfig(text)
	if problem != "" {
		return ""
	}
	data, err := json.Marshal(masked(withoutTyped(given, declared)))
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
		Help: "A JSON object, at most 256 KiB. Values may use macros such as %host.service.nginx%."}
	m.ErrorLine, m.ErrorColumn = form.PlaceOf(m.Error)
	return m
}

// fieldPrefix is what names of provider fields begin with, in forms as in errors.
const fieldPrefix = "providerFields."

// createFields are the fields of the form for a new cluster, by their names in the body of
// the request.
var createFields = form.Of(
	requestField("clusterTemplate"), requestField("name"), requestField("numMachines"), requestField("description"), requestField("provider"), form.Reader(readProviderFields), requestField("hardwaretype"), requestField("imagetype"), form.Picker{Path: form.At("services")},
	form.Reader(readLease), requestField("dnsSuffix"), requestField("onFailure"), form.Reader(readLabelLines), form.JSON{Path: form.At("config"), Object: true},
)

func requestField(name string) form.Part { return form.Field{Path: form.At(name)} }

// readProviderFields takes every text as it was typed; empty ones say that no default is wanted.
func readProviderFields(in *form.Input) {
	for name := range in.Values {
		if field, ok := strings.CutPrefix(name, fieldPrefix); ok {
			in.Doc.Set(form.At("providerFields", field), in.Values.Get(name))
		}
	}
}

func readLease(in *form.Input) {
	text, _ := in.Get("initialLeaseDuration")
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	millis, ok := page.ParseLease(text)
	if !ok {
		in.Fail(form.At("initialLeaseDuration"), text, "Write a duration such as 7d, 12h or 1d 6h 30m; 0 is no limit.")
		return
	}
	in.Doc.Set(form.At("initialLeaseDuration"), millis)
}

func readLabelLines(in *form.Input) {
	text, _ := in.Get("labels")
	labels, errs := loom.ReadLabels(text)
	for _, e := range errs {
		in.Fail(form.At("labels"), text, e.Message)
	}
	if len(errs) == 0 && len(labels) > 0 {
		in.Doc.Set(form.At("labels"), labels)
	}
}

// createForm is the form for a new cluster: its document is the body of the request, and
// what that cannot take is kept as it was typed.
type createForm struct {
	form.Edit
	ServicesShown, Advanced                 bool // the services were shown, the advanced part is open
	For, ForProvider, Suggested, Do, Change string
	settings                                settingsForm
}

func readCreateForm(v url.Values) createForm {
	f := createForm{Edit: createFields.Over(struct{}{}), ServicesShown: v.Get("servicesShown") != "", Advanced: v.Get("advanced") != "",
		For: v.Get("for"), ForProvider: v.Get("forProvider"), Suggested: v.Get("suggested"), Do: v.Get("do"), Change: v.Get("suggest")}
	f.settings = readSettings(v, f.Do)
	f.Fill(v)
	return f
}

// of returns a text or number of the request as text.
func (f *createForm) of(path ...any) string { return f.Doc.Text(path) }

// set changes a member of the request; the empty text leaves it out.
func (f *createForm) set(name, text string) {
	f.Doc.Set(form.At(name), text)
	if text == "" {
		f.Doc.Delete(form.At(name))
	}
}

func (f *createForm) services() []string { return f.Doc.Texts(form.At("services")) }

func (f *createForm) lease() string {
	return f.Text(form.At("initialLeaseDuration"), func() string {
		millis, err := strconv.ParseInt(f.of("initialLeaseDuration"), 10, 64)
		if err != nil {
			return ""
		}
		return page.WriteLease(millis)
	})
}

func (f *createForm) labels() string {
	return f.Text(form.At("labels"), func() string { return labelLines(f.texts("labels")) })
}

func (f *createForm) config() string {
	return f.Text(form.At("config"), func() string { return f.Doc.JSON(form.At("config")) })
}

// texts returns the members of an object, such as the provider fields that were typed.
func (f *createForm) texts(name string) map[string]string {
	texts := map[string]string{}
	for _, key := range f.Doc.Keys(form.At(name)) {
		texts[key] = f.of(name, key)
	}
	return texts
}

// input is the request that the form makes, with what cannot be read at all. What the
// template says already is left to it.
func (f *createForm) input(facts *clusters.TemplateFacts) (loom.CreateInput, []loom.FieldError) {
	in, err := form.DecodeDoc(f.Edit, wire.ReadCreate)
	var errs []loom.FieldError
	if err != nil {
		errs, _, _ = page.Refused(err)
	}
	maps.DeleteFunc(in.ProviderFields, func(_ string, value any) bool { return value == "" })
	if f.ServicesShown && len(in.Services) == 0 {
		errs = append(errs, loom.FieldError{Field: "services", Message: "Choose at least one service."})
	}
	switch text := f.config(); {
	case facts != nil && sameJSON(text, facts.Config):
		in.Config = nil
	case in.Config != nil && strings.Contains(text, loom.Redacted):
		in.Config = nil
		errs = append(errs, loom.FieldError{Field: "config", Message: "A hidden value (" + loom.Redacted + ") is not known here; write the value itself."})
	}
	return in, errs
}

// parseConfig reads a config, or says what is wrong with it. Requests of the API have it as
// a member.
func parseConfig(text string) (map[string]any, string) { return form.ParseObject(text, 1) }

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
func formOf(in loom.CreateInput) createForm {
	return createForm{Edit: createFields.Over(createBody(in)), ServicesShown: len(in.Services) > 0, For: in.Template, ForProvider: in.Provider}
}

// createBody is the body of a request for a cluster, without what it does not say.
func createBody(in loom.CreateInput) map[string]any {
	body := map[string]any{}
	if in.Machines > 0 {
		body["numMachines"] = in.Machines
	}
	for name, value := range map[string]string{"name": in.Name, "clusterTemplate": in.Template, "description": in.Description, "provider": in.Provider,
		"hardwaretype": in.HardwareType, "imagetype": in.ImageType, "dnsSuffix": in.DNSSuffix, "onFailure": in.OnFailure} {
		if value != "" {
			body[name] = value
		}
	}
	if in.LeaseMillis >= 0 {
		body["initialLeaseDuration"] = in.LeaseMillis
	}
	for name, value := range map[string]any{"services": in.Services, "labels": in.Labels, "config": in.Config, "providerFields": in.ProviderFields} {
		if reflect.ValueOf(value).Len() > 0 {
			body[name] = value
		}
	}
	return body
}
