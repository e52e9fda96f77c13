package catalog

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// The states of a test of a connection.
var (
	notTested  = ui.State{Word: "Not tested", Icon: "circle", Tone: ui.ToneIdle}
	testRuns   = ui.State{Word: "Testing", Icon: "ring", Tone: ui.ToneRun}
	testPassed = ui.State{Word: "Passed", Icon: "check-circle", Tone: ui.ToneOK}
	testFailed = ui.State{Word: "Failed", Icon: "error", Tone: ui.ToneBad}
)

// slowProbe is how long a test may wait for a provisioner before the page wonders.
const slowProbe = 5 * time.Second

// connection shows a test.
func (s *Server) connection(run processes.ProbeRun) adminview.ConnectionModel {
	m := adminview.ConnectionModel{State: testRuns, Now: s.Now(), ID: strconv.FormatInt(run.ID, 10), Steps: stepsOf(run.Answer)}
	switch {
	case !run.Ended && !run.Started && run.Now.Sub(run.Asked) > slowProbe:
		m.Note, m.Tone = "No provisioner has taken the test for "+ui.Duration(run.Now.Sub(run.Asked).Truncate(time.Second))+". Look at the processes, or ask a superadmin to.", ui.ToneWarn
	case !run.Ended && !run.Started:
		m.Note, m.Tone = "Waiting for a provisioner.", ui.ToneIdle
	case !run.Ended:
	case run.Answer.OK:
		m.State, m.Time = testPassed, run.Answer.Time
	default:
		m.State, m.Time, m.Left = testFailed, run.Answer.Time, stepsLeft(run.Answer)
	}
	return m
}

// storedConnection is connection for a provider that was saved at a time.
func (s *Server) storedConnection(run processes.ProbeRun, saved time.Time) adminview.ConnectionModel {
	m := s.connection(run)
	if run.Ended && savedSince(run.Asked, saved) {
		m.Note, m.Tone = "The provider was saved since. Test it again.", ui.ToneIdle
	}
	return m
}

// savedSince reports whether a provider was saved after its test was asked for: the test may have
// read the settings before.
func savedSince(asked, saved time.Time) bool { return saved.After(asked) }

// waySteps are the steps that the test of each cloud takes, in their order.
var waySteps = []string{"resolve", "connect", "TLS", "sign in", "sizes", "images"}

// stepsLeft names those that a test did not reach: it failed on the way to them.
func stepsLeft(p loom.Probe) string {
	if len(p.Checks) == 0 {
		return ""
	}
	last := p.Checks[len(p.Checks)-1]
	at := slices.Index(waySteps, last.Name)
	if last.OK || at < 0 {
		return ""
	}
	return page.Capital(strings.Join(waySteps[at+1:], ", "))
}

func stepsOf(p loom.Probe) []adminview.ConnectionStep {
	steps := make([]adminview.ConnectionStep, len(p.Checks))
	for i, c := range p.Checks {
		steps[i] = adminview.ConnectionStep{Name: page.Capital(c.Name), Message: c.Message, OK: c.OK, Millis: c.Millis}
	}
	return steps
}

// addConnection adds the test of the connection to the form of a provider: what is stored
// was tested, what is typed was not.
func (s *Server) addConnection(r *http.Request, actor loom.Actor, d draft, m *adminview.EditorModel) error {
	if d.kind != loom.KindProvider || !m.FormMode {
		return nil
	}
	c := adminview.ConnectionModel{State: notTested, Now: s.Now(), Note: "Test the connection before you save. Nothing is stored or made.", Tone: ui.ToneIdle}
	m.Connection = &c
	if d.name == "" {
		return nil
	}
	last, err := s.Processes.LastProbe(r.Context(), actor, d.name)
	if errors.Is(err, loom.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	c = s.connection(last)
	c.Note, c.Tone = "This is the test of the saved provider.", ui.ToneIdle
	return nil
}

// adminDraftProbe tests what a form says. With scripts the panel beside the form shows how
// it goes; without, that is a page of its own.
func (s *Server) adminDraftProbe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	d, err := s.readEditor(w, r, actor, loom.KindProvider, "")
	if err != nil {
		return err
	}
	var id int64
	if len(d.read.Errors) > 0 { // what is missing may be what the test is for
		err = loom.InvalidFields(d.read.Errors)
	} else {
		var given loom.ProviderDraft
		if given, err = s.Catalog.ProviderDraft(r.Context(), actor, []byte(d.body)); err == nil {
			id, err = s.Processes.BeginDraft(r.Context(), actor, given)
		}
	}
	if err != nil {
		e := loom.AsError(err)
		switch e.Kind {
		case loom.Invalid, loom.Unavailable, loom.Throttled, loom.Conflict:
			return s.connectionPart(w, r, actor, httpx.PageStatus(e.Kind), s.refusedConnection(r, actor, d, e), nil)
		}
		return err
	}
	if !page.Wants(r, adminview.ConnectionID) {
		return httpx.SeeOther(w, r, route.AdminProbeRun(strconv.FormatInt(id, 10)))
	}
	run, err := s.Processes.ProbeByID(r.Context(), actor, id)
	if err != nil {
		return err
	}
	m := s.connection(run)
	m.Before = s.stepsBefore(r, actor)
	m.Poll = pollOf(m.ID, r.PostForm.Get(adminview.FieldBefore))
	return s.Fragment(w, r, http.StatusOK, adminview.Connection(m))
}

// pollOf is where a panel looks again; before is the test that it shows until there are steps.
func pollOf(id, before string) string {
	return route.Query(route.AdminProbeRun(id), adminview.FieldBefore, before)
}

// stepsBefore are those of the test that the panel shows so far.
func (s *Server) stepsBefore(r *http.Request, actor loom.Actor) []adminview.ConnectionStep {
	id, err := strconv.ParseInt(cmp.Or(r.PostFormValue(adminview.FieldBefore), r.URL.Query().Get(adminview.FieldBefore)), 10, 64)
	if err != nil {
		return nil
	}
	run, err := s.Processes.ProbeByID(r.Context(), actor, id)
	if err != nil {
		return nil // it is of the past
	}
	return stepsOf(run.Answer)
}

// refusedConnection says why what is typed cannot be tested.
func (s *Server) refusedConnection(r *http.Request, actor loom.Actor, d draft, e *loom.Error) adminview.ConnectionModel {
	m := adminview.ConnectionModel{State: notTested, Now: s.Now(), Note: e.Message, Tone: ui.ToneBad}
	if len(e.Fields) > 0 {
		label := s.fieldLabels(r, actor, d)
		var lines []string
		for _, f := range e.Fields {
			lines = append(lines, label(f.Field)+": "+f.Message)
		}
		slices.Sort(lines)
		m.Note = strings.Join(slices.Compact(lines), " ")
	}
	return m
}

// fieldLabels names the fields of the form as it does.
func (s *Server) fieldLabels(r *http.Request, actor loom.Actor, d draft) func(field string) string {
	labels := map[string]string{}
	types, err := s.Catalog.PluginTypes(r.Context(), actor, loom.KindProviderType)
	var body struct {
		Type string `json:"providertype"`
	}
	if entry, parsed := readDraft(loom.KindProvider, d.body); parsed == nil {
		body.Type = entry.(*loom.Provider).Type
	}
	for _, t := range types {
		for _, group := range t.Parameters {
			for name, schema := range group.Fields {
				if err == nil && (body.Type == t.Name || labels["provisioner."+name] == "") {
					labels["provisioner."+name] = cmp.Or(schema.Label, name)
				}
			}
		}
	}
	return func(field string) string {
		return cmp.Or(labels[field], map[string]string{"providertype": "Provider type", "name": "Name"}[field], field)
	}
}

// adminProbeRun is one test: the panel again while it runs, or a page of its own.
func (s *Server) adminProbeRun(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := page.PathNumber(r, "probe", "test")
	if err != nil {
		return err
	}
	run, err := s.Processes.ProbeByID(r.Context(), actor, id)
	if err != nil {
		return err
	}
	m := s.connection(run)
	if !run.Ended {
		m.Before = s.stepsBefore(r, actor)
		m.Poll = pollOf(m.ID, r.URL.Query().Get(adminview.FieldBefore))
	} else if page.Wants(r, adminview.ConnectionID) {
		for _, field := range slices.Sorted(maps.Keys(run.Answer.Choices)) {
			m.Choices = append(m.Choices, adminview.ConnectionChoices{ListID: ui.FieldID("", "provisioner."+field) + "-list", Options: optionsOf(run.Answer.Choices[field])})
		}
	}
	return s.connectionPart(w, r, actor, http.StatusOK, m, &run)
}

// connectionPart answers with the panel, or without scripts with a page of it.
func (s *Server) connectionPart(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m adminview.ConnectionModel, run *processes.ProbeRun) error {
	if page.Wants(r, adminview.ConnectionID) {
		return s.Fragment(w, r, http.StatusOK, adminview.Connection(m)) // the panel itself says what is wrong
	}
	m.Bare = true
	frame := page.AdminFrame("Connection test", route.AdminKind(loom.KindProvider), ui.Crumb{Label: adminview.Plural(loom.KindProvider), Href: route.AdminKind(loom.KindProvider)})
	sheet := adminview.PageModel{Title: "Connection test", Intro: "This is the test of what you typed. The form is still open in its own tab.", Parts: []templ.Component{adminview.Connection(m)}}
	if run != nil && run.Ended {
		sheet.Parts = append(sheet.Parts, choiceParts(run.Answer)...)
	}
	page.Reloading(r, &frame, m.Poll != "")
	frame.Refresh = min(frame.Refresh, 2)
	return s.Sheet(w, r, actor, status, frame, sheet)
}

// choiceParts list what fields can be set to, for people who have to type it.
func choiceParts(p loom.Probe) []templ.Component {
	grid := adminview.TableModel{ID: "choices", Caption: "What the fields can be set to", ShowCaption: true, Columns: []ui.Column{{Label: "Field"}, {Label: "Value"}, {Label: "Name"}}}
	for _, field := range slices.Sorted(maps.Keys(p.Choices)) {
		for _, c := range p.Choices[field] {
			grid.Rows = append(grid.Rows, []adminview.Cell{{Text: field, Mono: true}, {Text: c.ID, Mono: true}, {Text: c.Name}})
		}
	}
	if len(grid.Rows) == 0 {
		return nil
	}
	return []templ.Component{adminview.Table(grid)}
}

func optionsOf(choices []loom.ProbeChoice) []ui.Option {
	options := make([]ui.Option, len(choices))
	for i, c := range choices {
		options[i] = ui.Option{Value: c.ID, Label: cmp.Or(c.Name, c.ID)}
	}
	return options
}

// choices are what the fields of a provider suggest: what its last test found.
func (s *Server) choices(r *http.Request, actor loom.Actor, provider string) (map[string][]ui.Option, error) {
	suggested := map[string][]ui.Option{}
	if provider == "" {
		return suggested, nil
	}
	last, err := s.Processes.LastProbe(r.Context(), actor, provider)
	if errors.Is(err, loom.NotFound) {
		return suggested, nil
	}
	for field, choices := range last.Answer.Choices {
		suggested[field] = optionsOf(choices)
	}
	return suggested, err
}
