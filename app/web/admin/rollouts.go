package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

func rolloutsFrame(title string, crumbs ...ui.Crumb) layout.Model {
	if len(crumbs) > 0 {
		crumbs = append([]ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Rollouts", Href: route.AdminRollouts()}}, crumbs...)
	}
	m := page.AdminFrame(title, route.AdminRollouts(), crumbs...)
	if title != "Rollouts" {
		m.Section = "Rollouts"
	}
	return m
}

// rolloutName is what pages call a rollout.
func rolloutName(number int) string { return "Rollout " + strconv.Itoa(number) }

func (s *Server) adminRollouts(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	status := r.URL.Query().Get("status")
	var statuses []string
	if slices.Contains(loom.RolloutStatuses, loom.RolloutStatus(status)) {
		statuses = []string{status}
	} else {
		status = ""
	}
	views, next, prev, err := s.Clusters.Rollouts(r.Context(), actor, statuses, s.PageOf(r))
	if err != nil {
		return err
	}
	add := ui.ButtonModel{Label: "New rollout", Icon: "plus", Kind: ui.Primary, Href: route.AdminRolloutNew()}
	m := adminview.PageModel{Title: "Rollouts", Actions: []ui.ButtonModel{add}, Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/rollouts", "")},
		Intro: "A rollout changes many clusters in waves and stops when clusters fail."}
	grid := adminview.TableModel{ID: "rollouts", Caption: "Rollouts, the newest first", Now: s.Now(),
		Columns: []ui.Column{{Label: "Rollout"}, {Label: "Change"}, {Label: "Status"}, {Label: "Clusters done", Numeric: true}, {Label: "By"}, {Label: "Created"}},
		Pages:   page.Turned("Pages of rollouts", route.AdminRollouts(), next, prev, "status", status),
		Empty:   ui.EmptyModel{Icon: "branch", Text: "There are no rollouts yet.", Action: ui.ButtonModel{Label: add.Label, Icon: add.Icon, Href: add.Href}}}
	for i := range views {
		v := &views[i]
		state := adminview.RolloutState(v.Status)
		why := v.Why
		if v.Status == loom.RolloutRunning && why == "" {
			why = fmt.Sprintf("Wave %d of %d", v.Wave, v.Waves)
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{
			{Text: rolloutName(v.Number), Href: route.AdminRollout(v.Number)}, {Text: v.Change(), Sub: v.Asked.Q}, {State: &state, Sub: why},
			{Text: fmt.Sprintf("%d of %d", v.Clusters(loom.RolloutDone), v.Clusters())}, {Text: string(v.CreatedBy)}, {Time: v.Created},
		})
	}
	grid.CSV, grid.JSON = s.ExportsOf(r)
	filters := adminview.FiltersModel{Action: route.AdminRollouts(), Whole: true, Fields: []ui.FieldModel{{Name: "status", Label: "Status", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true,
		Options: page.Options(status, "", "All statuses", "ready", "Ready", "running", "Running", "stopped", "Stopped", "complete", "Complete", "aborted", "Aborted")}}}
	m.Parts = []templ.Component{adminview.Filters(filters), adminview.Table(grid)}
	return s.LiveSheet(w, r, actor, route.TopicRollouts(), rolloutsFrame("Rollouts"), m)
}

// rolloutForm is what the form of a rollout edits.
type rolloutForm struct {
	Kind        string               `json:"kind"`
	ConfigPatch string               `json:"configPatch"`
	Q           string               `json:"q"`
	Waves       []string             `json:"waves"`
	Minutes     int                  `json:"minutes"`
	Days        []string             `json:"days"`
	From        string               `json:"from"`
	To          string               `json:"to"`
	Settings    wire.RolloutSettings `json:"settings"`
}

var weekdays = []form.Choice{{Value: "mon", Label: "Monday"}, {Value: "tue", Label: "Tuesday"}, {Value: "wed", Label: "Wednesday"}, {Value: "thu", Label: "Thursday"},
	{Value: "fri", Label: "Friday"}, {Value: "sat", Label: "Saturday"}, {Value: "sun", Label: "Sunday"}}

// rolloutChange is the change that the address of a form names: an entry that is brought, or a
// rollout that is rolled back. The form asks for the change where it names none.
type rolloutChange struct {
	kind    string
	entries []map[string]any
	rollout int
	says    string
}

func readRolloutChange(q url.Values) (rolloutChange, bool) {
	number := func(name string) int {
		n, _ := strconv.ParseInt(q.Get(name), 10, 32)
		return int(n)
	}
	switch kind := loom.EntityKind(q.Get("entry")); {
	case q.Get("kind") == string(loom.ChangeRollback) && number("rollout") > 0:
		n := number("rollout")
		return rolloutChange{kind: q.Get("kind"), rollout: n, says: fmt.Sprintf("Rolls back rollout %d: each cluster goes back to before the operation that the rollout began.", n)}, true
	case kind.Valid() && q.Get("name") != "" && number("version") > 0:
		name, version := q.Get("name"), number("version")
		return rolloutChange{kind: string(loom.ChangeUpdate), entries: []map[string]any{{"kind": kind, "name": name, "version": version}},
			says: fmt.Sprintf("Updates clusters to version %d of the %s %s.", version, kind.Word(), name)}, true
	}
	return rolloutChange{}, false
}

func (c rolloutChange) edit() form.Edit {
	defaults := loom.DefaultRolloutSettings()
	doc := rolloutForm{Kind: string(loom.ChangeUpdate), Waves: []string{"1", "10%", "rest"}, Minutes: defaults.Pause / 60, Days: []string{}, Settings: wire.RolloutSettings(defaults)}
	change := []form.Part{form.Note{Component: adminview.Text(c.says)}}
	if c.kind == "" {
		change = []form.Part{
			form.Field{Path: form.At("kind"), Face: ui.FieldModel{Label: "Change", Kind: ui.FieldSelect, Width: "m",
				Options: page.Options("", string(loom.ChangeUpdate), "Update to the newest versions", string(loom.ChangeRestart), "Restart all services", string(loom.ChangeConfigure), "Change the config")}},
			form.Field{Path: form.At("configPatch"), Face: ui.FieldModel{Label: "Config change", Kind: ui.FieldText, Mono: true, Optional: true, Placeholder: `{"nginx": {"port": 8081}}`, Help: "JSON that is merged into the config of each cluster; only for “Change the config”."}},
		}
	}
	setting := func(name string, face ui.FieldModel) form.Part {
		return form.Field{Path: form.At("settings", name), Face: face}
	}
	return form.Of(append(change,
		form.Field{Path: form.At("q"), Face: ui.FieldModel{Label: "Only these clusters", Width: "l", Optional: true, Placeholder: "label:team=web -owner:ana", Help: "A search as in the list of clusters. Leave it empty for all clusters."}},
		form.Words{Path: form.At("waves"), Face: ui.FieldModel{Label: "Waves", Width: "m", Help: "Numbers of clusters, percentages, and “rest”. The smallest clusters come first."}},
		form.Field{Path: form.At("minutes"), Face: ui.FieldModel{Label: "Pause between waves, in minutes", Kind: ui.FieldNumber, Width: "s"}},
		setting("confirm", ui.FieldModel{Label: "Wait for me before each wave", Kind: ui.FieldCheckbox}),
		form.Row{Parts: []form.Part{
			setting("concurrency", ui.FieldModel{Label: "Clusters at the same time", Kind: ui.FieldNumber, Width: "s", Help: "Others wait for their turn."}),
			setting("maxFailed", ui.FieldModel{Label: "Clusters that may fail", Kind: ui.FieldNumber, Width: "s", Help: "One more, and the rollout stops."}),
		}},
		form.Fold{Title: "Window and changed clusters", Key: "more", Parts: []form.Part{
			form.Picker{Path: form.At("days"), Legend: "Days", Help: "Operations begin only within this window. Leave it empty for any time; choose no days for every day. Without a time zone, times are universal time.", Choices: weekdays},
			form.Row{Parts: []form.Part{
				form.Field{Path: form.At("from"), Face: ui.FieldModel{Label: "From", Width: "s", Optional: true, Placeholder: "22:00"}},
				form.Field{Path: form.At("to"), Face: ui.FieldModel{Label: "To", Width: "s", Optional: true, Placeholder: "04:00"}},
				setting("timezone", ui.FieldModel{Label: "Time zone", Width: "s", Optional: true, Placeholder: "Europe/Berlin"}),
			}},
			setting("changed", ui.FieldModel{Label: "Clusters that changed since", Kind: ui.FieldSelect, Width: "m", Options: page.Options("", string(loom.RolloutSkip), "Skip them", string(loom.RolloutReplan), "Change them if the effect is no stronger")}),
		}},
	)...).Over(doc)
}

// read turns what was filled in into a request.
func (c rolloutChange) read(body []byte) (clusters.RolloutInput, error) {
	var in clusters.RolloutInput
	var f rolloutForm
	if err := json.Unmarshal(body, &f); err != nil {
		return in, loom.NewError(loom.Invalid, "The form was not understood: %v.", err)
	}
	request := map[string]any{}
	out := map[string]any{"kind": f.Kind, "q": f.Q, "request": request}
	switch {
	case c.rollout > 0:
		out["kind"], request["rollout"] = c.kind, c.rollout
	case c.kind != "":
		out["kind"], out["entries"] = c.kind, c.entries
	case f.Kind == string(loom.ChangeConfigure):
		if !json.Valid([]byte(f.ConfigPatch)) {
			return in, loom.InvalidFields([]loom.FieldError{{Field: "configPatch", Message: "Write an object in JSON."}})
		}
		request["configPatch"], request["restart"] = json.RawMessage(f.ConfigPatch), true
	}
	waves := []map[string]any{}
	for _, word := range f.Waves {
		percent, is := strings.CutSuffix(word, "%")
		n, err := strconv.ParseInt(percent, 10, 32)
		switch {
		case word == "rest":
			waves = append(waves, map[string]any{"rest": true})
		case err != nil || n < 1 || is && n > 100:
			return in, loom.InvalidFields([]loom.FieldError{{Field: "waves", Message: fmt.Sprintf("“%.20s” is no wave. Write a number of clusters, a percentage such as 10%%, or “rest”.", word)}})
		case is:
			waves = append(waves, map[string]any{"percent": n})
		default:
			waves = append(waves, map[string]any{"count": n})
		}
	}
	out["waves"] = waves
	f.Settings.Pause = f.Minutes * 60
	f.Settings.Windows = []loom.Window{}
	if f.From != "" || f.To != "" || len(f.Days) > 0 {
		f.Settings.Windows = []loom.Window{{Days: f.Days, From: f.From, To: f.To}}
	}
	out["settings"] = f.Settings
	data, err := json.Marshal(out)
	if err != nil {
		return in, fmt.Errorf("encode a rollout: %w", err)
	}
	in, err = wire.ReadRollout(data)
	if err == nil {
		err = loom.InvalidFields(in.Settings.Check())
	}
	return in, atForm(err)
}

// atForm moves errors to the fields of the form.
func atForm(err error) error {
	e := loom.AsError(err)
	if e == nil || len(e.Fields) == 0 {
		return err
	}
	fields := slices.Clone(e.Fields)
	for i, f := range fields {
		for from, to := range map[string]string{"settings.windows[0].from": "from", "settings.windows[0].to": "to", "settings.windows[0].days": "days", "settings.pause": "minutes", "request.configPatch": "configPatch", "configPatch": "configPatch"} {
			if f.Field == from {
				fields[i].Field = to
			}
		}
	}
	return loom.InvalidFields(fields)
}

func (s *Server) adminRolloutNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	c, _ := readRolloutChange(r.URL.Query())
	return s.showRolloutForm(w, r, actor, http.StatusOK, c.edit())
}

func (s *Server) showRolloutForm(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, e form.Edit) error {
	shown := e.Shown()
	action := route.AdminRollouts()
	if q := r.URL.RawQuery; q != "" {
		action += "?" + q
	}
	m := adminview.FormModel{Action: action, Errors: shown.Errors, Button: "Preview rollout", Busy: "Previewing…", Cancel: route.AdminRollouts(), Parts: shown.Parts()}
	return s.Sheet(w, r, actor, status, rolloutsFrame("New rollout", ui.Crumb{Label: "New"}), adminview.PageModel{
		Intro: "The next page shows what happens to each cluster. Nothing is changed before you start the rollout there.", Parts: []templ.Component{adminview.Form(m)}})
}

func (s *Server) adminRolloutMake(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	c, _ := readRolloutChange(r.URL.Query())
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	e := c.edit()
	in, err := form.Decode(&e, values, c.read)
	var v clusters.RolloutView
	if err == nil {
		v, err = s.Clusters.MakeRollout(r.Context(), actor, in)
		err = atForm(err)
	}
	if fields, status, refused := page.Refused(err); refused {
		return s.showRolloutForm(w, r, actor, status, e.Refused("The rollout was not created.", fields))
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminRollout(v.Number), httpx.Flash{})
}

func pathRollout(r *http.Request) (int, error) {
	n, err := page.PathNumber(r, "id", "rollout")
	if err == nil && n > 1<<31-1 {
		err = loom.NewError(loom.NotFound, "There is no rollout %d.", n)
	}
	return int(n), err
}

// waveHeads is how many clusters of each wave the page of a rollout names.
const waveHeads = 8

func (s *Server) adminRollout(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.rolloutPage(w, r, actor, http.StatusOK, ui.FormErrors{})
}

func (s *Server) rolloutPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, errs ui.FormErrors) error {
	n, err := pathRollout(r)
	if err != nil {
		return err
	}
	v, err := s.Clusters.Rollout(r.Context(), actor, n)
	if err != nil {
		return err
	}
	heads, err := s.Clusters.RolloutHeads(r.Context(), actor, n, waveHeads)
	if err != nil {
		return err
	}
	shown := adminview.RolloutModel{RolloutView: v, Heads: heads, Now: s.Now(), Confirm: v.Replaced(), Errors: errs}
	path := "/v2/rollouts/" + strconv.Itoa(n)
	m := adminview.PageModel{Title: v.Change() + " #" + strconv.Itoa(n), Parts: []templ.Component{adminview.Rollout(shown)},
		Calls: []ui.JSONCall{page.Call("read", http.MethodGet, path, ""), page.Call("clusters", http.MethodGet, path+"/clusters", "")}}
	frame := rolloutsFrame(v.Change(), ui.Crumb{Label: rolloutName(n)})
	if status != http.StatusOK || v.Status == loom.RolloutReady {
		return s.Sheet(w, r, actor, status, frame, m)
	}
	return s.LiveSheet(w, r, actor, route.TopicRollout(n), frame, m)
}

func (s *Server) adminRolloutClusters(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := pathRollout(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	var f clusters.RolloutFilter
	if wave, err := strconv.ParseInt(q.Get("wave"), 10, 32); err == nil {
		f.Wave = new(int(wave))
	}
	if status := q.Get("status"); slices.Contains(loom.RolloutClusterStatuses, loom.RolloutClusterStatus(status)) {
		f.Statuses = []string{status}
	}
	v, err := s.Clusters.Rollout(r.Context(), actor, n)
	if err != nil {
		return err
	}
	list, err := s.Clusters.RolloutClusters(r.Context(), actor, n, f, s.PageOf(r))
	if err != nil {
		return err
	}
	waves := []string{"", "All waves"}
	for wave := range v.Waves {
		waves = append(waves, strconv.Itoa(wave+1), "Wave "+strconv.Itoa(wave+1))
	}
	base := route.AdminRolloutClusters(n)
	filters := adminview.FiltersModel{Action: base, Whole: true, Fields: []ui.FieldModel{
		{Name: "wave", Label: "Wave", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(q.Get("wave"), append(waves, "0", "Left out")...)},
		{Name: "status", Label: "Status", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true,
			Options: page.Options(q.Get("status"), "", "All statuses", "waiting", "Waiting", "running", "Running", "done", "Done", "failed", "Failed", "undone", "Undone", "skipped", "Skipped")}}}
	grid := adminview.TableModel{ID: "rollout-clusters", Caption: "Clusters of the rollout", Now: s.Now(),
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Wave", Numeric: true}, {Label: "Effect"}, {Label: "Status"}, {Label: "Operation"}, {Label: "Ended"}},
		Pages:   page.Turned("Pages of clusters", base, list.Next, list.Prev, "wave", q.Get("wave"), "status", q.Get("status")),
		Empty:   ui.EmptyModel{Icon: "search", Text: "No cluster of the rollout matches."}}
	for _, c := range list.Items {
		state := adminview.RolloutClusterState(c.Status)
		operation := adminview.Cell{}
		if c.Operation > 0 {
			operation = adminview.Cell{Text: strconv.Itoa(c.Operation), Href: route.Operation(loom.OperationRef{Cluster: c.Cluster, Number: c.Operation})}
		}
		wave := strconv.Itoa(c.Wave)
		if c.Wave == 0 {
			wave = "–"
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{{Text: c.Name, Href: route.Cluster(c.Cluster)}, {Text: wave}, {Text: clusters.Effect(c.Effect).Word()}, {State: &state, Sub: c.Note}, operation, {Time: c.End}})
	}
	grid.CSV, grid.JSON = s.ExportsOf(r)
	m := adminview.PageModel{Title: "Clusters of rollout " + strconv.Itoa(n), Parts: []templ.Component{adminview.Filters(filters), adminview.Table(grid)},
		Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/rollouts/"+strconv.Itoa(n)+"/clusters", "")}}
	return s.LiveSheet(w, r, actor, route.TopicRollout(n), rolloutsFrame("Clusters", ui.Crumb{Label: rolloutName(n), Href: route.AdminRollout(n)}, ui.Crumb{Label: "Clusters"}), m)
}

// adminRolloutAsk asks before a rollout is aborted. Other verbs need no question.
func (s *Server) adminRolloutAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := pathRollout(r)
	if err != nil {
		return err
	}
	if r.PathValue("verb") != "abort" {
		return loom.NewError(loom.NotFound, "There is no such page.")
	}
	v, err := s.Clusters.Rollout(r.Context(), actor, n)
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Button: "Abort rollout", Busy: "Aborting…", Cancel: route.AdminRollout(n)}
	waiting, running := v.Clusters(loom.RolloutWaits), v.Clusters(loom.RolloutRuns)
	m.Lines = []string{"Loom does not change the " + ui.Count(waiting, "cluster that waits.", "clusters that wait.")}
	if running > 0 {
		m.Lines = append(m.Lines, ui.Count(running, "operation that runs is aborted.", "operations that run are aborted."))
	}
	return s.Confirm(w, r, actor, rolloutsFrame("Abort rollout "+strconv.Itoa(n), ui.Crumb{Label: rolloutName(n), Href: route.AdminRollout(n)}, ui.Crumb{Label: "Abort"}), adminview.Confirm(m))
}

func (s *Server) adminRolloutAct(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := pathRollout(r)
	if err != nil {
		return err
	}
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	var v clusters.RolloutView
	said := ""
	switch r.PathValue("verb") {
	case "start":
		if v, err = s.Clusters.Rollout(r.Context(), actor, n); err != nil {
			return err
		}
		machines := v.Replaced()
		if machines > 0 && strings.TrimSpace(values.Get(adminview.FieldConfirm)) != strconv.Itoa(machines) {
			return s.rolloutPage(w, r, actor, http.StatusBadRequest, page.BadConfirm("The rollout was not started.", strconv.Itoa(machines)))
		}
		said = "Started rollout %d."
		_, err = s.Clusters.StartRollout(r.Context(), actor, n, clusters.StartInput{Hash: values.Get("hash"), Replace: machines > 0})
	case "stop":
		said = "Stopped rollout %d. Operations that run continue."
		_, err = s.Clusters.StopRollout(r.Context(), actor, n)
	case "resume":
		said = "Resumed rollout %d."
		_, err = s.Clusters.ResumeRollout(r.Context(), actor, n)
	case "continue":
		said = "The next wave of rollout %d begins."
		_, err = s.Clusters.ContinueRollout(r.Context(), actor, n)
	case "abort":
		said = "Aborted rollout %d."
		_, err = s.Clusters.AbortRollout(r.Context(), actor, n)
	default:
		return loom.NewError(loom.NotFound, "There is no such page.")
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminRollout(n), httpx.Flash{Tone: "ok", Text: fmt.Sprintf(said, n)})
}
