package admin

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/api/wire"
	"loom/app/hook"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

var deliveryStates = map[loom.DeliveryStatus]ui.State{
	loom.DeliveryWaiting:   {Word: "Waiting", Icon: "circle", Tone: ui.ToneIdle},
	loom.DeliveryDelivered: {Word: "Delivered", Icon: "check-circle", Tone: ui.ToneOK},
	loom.DeliveryRefused:   {Word: "Refused", Icon: "ban", Tone: ui.ToneWarn},
	loom.DeliveryFailed:    {Word: "Failed", Icon: "error", Tone: ui.ToneBad},
}

func deliveryState(d loom.DeliveryStatus) *ui.State {
	state, ok := deliveryStates[d]
	if !ok {
		state = ui.State{Word: string(d), Icon: "circle", Tone: ui.ToneIdle}
	}
	return &state
}

func (s *Server) adminHook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.hookPage(w, r, actor, nil)
}

// hookPage shows a hook with the log of its deliveries; tried is what a test gave.
func (s *Server) hookPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, tried *hook.TestResult) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	result, filter := q.Get("result"), hook.Filter{}
	if _, known := deliveryStates[loom.DeliveryStatus(result)]; known {
		filter.Statuses = []loom.DeliveryStatus{loom.DeliveryStatus(result)}
	}
	list, err := s.Hooks.Deliveries(r.Context(), actor, h.ID, filter, s.PageOf(r))
	if err != nil {
		return err
	}
	state := hookState(h)
	m := adminview.PageModel{Title: h.Name, State: &state, Actions: []ui.ButtonModel{{Label: "Edit", Icon: "edit", Kind: ui.Primary, Href: route.AdminHookVerb(h.ID, "edit")}},
		Menu:  []ui.MenuItem{page.Deleting(route.AdminHookVerb(h.ID, "delete"))},
		Calls: []ui.JSONCall{page.Call("read", http.MethodGet, "/v2/hooks/"+itoa(h.ID), ""), page.Call("deliveries", http.MethodGet, "/v2/hooks/"+itoa(h.ID)+"/deliveries", "")}}
	if !h.Enabled {
		m.Banners = []ui.BannerModel{{Tone: ui.ToneHold, Text: hookIsOff, Action: "Edit", ActionHref: route.AdminHookVerb(h.ID, "edit")}}
	}
	if tried != nil {
		m.Parts = append(m.Parts, triedPart(*tried))
	}
	filters := adminview.FiltersModel{Action: route.AdminHook(h.ID), Whole: true, Label: "Filter deliveries", Fields: []ui.FieldModel{
		{Name: "result", Label: "Result", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true,
			Options: page.Options(result, "", "All results", "delivered", "Delivered", "waiting", "Waiting", "failed", "Failed", "refused", "Refused")}}}
	if result != "" {
		filters.Clear = route.AdminHook(h.ID)
	}
	grid := s.deliveryGrid(h, list, result)
	grid.CSV, grid.JSON = s.ExportsAt(route.AdminDeliveries(h.ID), q)
	m.Parts = append(m.Parts, ui.Definitions(hookFacts(h)),
		adminview.Act(route.AdminHookVerb(h.ID, "test"), ui.ButtonModel{Label: "Send a test", Busy: "Sending…", Icon: "play", Submit: true}),
		adminview.Card("deliveries-title", "Deliveries", adminview.Filters(filters), adminview.Table(grid)))
	return s.Sheet(w, r, actor, http.StatusOK, hooksFrame(h.Name, ui.Crumb{Label: h.Name}), m)
}

func hookFacts(h loom.Hook) []ui.Def {
	all := func(text string) string {
		if text == "" {
			return "all"
		}
		return text
	}
	facts := []ui.Def{{Term: "URL", Text: h.URL, Mono: true}, {Term: "Events", Text: eventWords(h.Events)},
		{Term: "Actions", Text: all(strings.Join(actionWords(h.Actions), ", "))}, {Term: "Templates", Text: all(strings.Join(h.Templates, ", "))}, {Term: "Secret", Text: "set and sealed; never shown"}}
	if h.Blocking {
		facts = append(facts, ui.Def{Term: "Blocking", Text: map[string]string{loom.OnTimeoutGo: "yes; without an answer the operation goes", loom.OnTimeoutRefuse: "yes; without an answer the operation is refused"}[h.OnTimeout]})
	}
	if h.Global {
		facts = append(facts, ui.Def{Term: "For", Text: "all tenants"})
	}
	if h.LegacyBody {
		facts = append(facts, ui.Def{Term: "Body", Text: "legacy payload"})
	}
	return facts
}

// hookIsOff says why nothing is sent again.
const hookIsOff = "The hook is off: Loom sends nothing. Edit it to switch it on."

// deliveryAbout names the operation of a delivery, or the cluster where it is about its health.
func deliveryAbout(d loom.Delivery) string {
	if d.Operation.Number == 0 {
		return d.Operation.Cluster.String()
	}
	return d.Operation.String()
}

func deliveryHref(d loom.Delivery) string {
	if d.Operation.Number == 0 {
		return route.ClusterTab(d.Operation.Cluster, "health")
	}
	return route.Operation(d.Operation)
}

func (s *Server) deliveryGrid(h loom.Hook, list hook.List, result string) adminview.TableModel {
	id := h.ID
	m := adminview.TableModel{ID: "deliveries", Caption: "Deliveries, the newest first", Now: s.Now(),
		Columns: []ui.Column{{Label: "Delivery"}, {Label: "Event"}, {Label: "Result"}, {Label: "About"}, {Label: "Tries", Numeric: true}, {Label: "When"}, {Label: "Actions", LabelHidden: true}},
		Pages:   page.Turned("Pages of deliveries", route.AdminHook(id), list.Next, list.Prev, "result", result),
		Empty:   ui.EmptyModel{Icon: "external", Text: "Nothing was sent yet. Send a test, or start an operation."}}
	if result != "" {
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No delivery has this result."}
	}
	if !h.Enabled {
		m.Columns = m.Columns[:len(m.Columns)-1]
	}
	for _, d := range list.Items {
		outcome := adminview.Cell{State: deliveryState(d.Status), Sub: d.Error}
		m.Rows = append(m.Rows, []adminview.Cell{
			{Text: itoa(d.ID), Href: route.AdminDelivery(id, d.ID), Mono: true}, {Text: page.Capital(string(d.Event))},
			outcome, {Text: deliveryAbout(d), Href: deliveryHref(d), Mono: true}, {Text: strconv.Itoa(d.Tries)}, {Time: d.Created}})
		if h.Enabled {
			m.Rows[len(m.Rows)-1] = append(m.Rows[len(m.Rows)-1], adminview.Cell{Part: adminview.Act(route.AdminDeliveryReplay(id, d.ID), ui.ButtonModel{Label: "Send again", Small: true, Submit: true, Busy: "Sending…", Attrs: templ.Attributes{"aria-label": "Send again: delivery " + itoa(d.ID)}})})
		}
	}
	return m
}

func answered(code int) string {
	if code == 0 {
		return "none"
	}
	return strconv.Itoa(code) + " " + http.StatusText(code)
}

func triedPart(t hook.TestResult) templ.Component {
	banner := ui.BannerModel{Tone: ui.ToneOK, Text: "The endpoint answered " + answered(t.Code) + " after " + ui.Duration(t.Took) + "."}
	if !t.OK {
		banner = ui.BannerModel{Tone: ui.ToneBad, Text: t.Problem}
	}
	parts := []templ.Component{ui.Banner(banner), ui.Code(ui.CodeModel{ID: "test-body", Label: "request body", Text: prettyText(t.Body), Wrap: true})}
	if t.Answer != "" {
		parts = append(parts, ui.Code(ui.CodeModel{ID: "test-answer", Label: "what came back", Text: t.Answer, Wrap: true}))
	}
	return adminview.Card("test-title", "Test", parts...)
}

// prettyText indents JSON; other text stays as it is.
func prettyText(text string) string {
	if tree := page.ParseTree([]byte(text)); tree != nil {
		return page.PrettyJSON(tree)
	}
	return text
}

// adminHookTest sends a test and shows what came of it in the answer.
func (s *Server) adminHookTest(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathHook(r)
	if err != nil {
		return err
	}
	tried, err := s.Hooks.Test(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return s.hookPage(w, r, actor, &tried)
}

func pathDelivery(r *http.Request) (loom.HookID, loom.DeliveryID, error) {
	id, err := pathHook(r)
	if err != nil {
		return 0, 0, err
	}
	n, err := page.PathNumber(r, "delivery", "delivery")
	return id, loom.DeliveryID(n), err
}

// adminDeliveries leads to the page that shows them: its files are at this address.
func (s *Server) adminDeliveries(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.AdminHook(h.ID))
}

func (s *Server) adminDelivery(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, delivery, err := pathDelivery(r)
	if err != nil {
		return err
	}
	h, err := s.Hooks.Hook(r.Context(), actor, id)
	if err != nil {
		return err
	}
	d, err := s.Hooks.Delivery(r.Context(), actor, id, delivery)
	if err != nil {
		return err
	}
	facts := []ui.Def{
		{Term: "Event", Text: page.Capital(string(d.Event))}, {Term: "About", Value: adminview.Link(deliveryAbout(d.Delivery), deliveryHref(d.Delivery))},
		{Term: "Happened", Value: ui.Time(d.Time, s.Now())}, {Term: "Tries", Text: strconv.Itoa(d.Tries)},
	}
	if d.Tries > 0 {
		facts = append(facts, ui.Def{Term: "Answer", Text: answered(d.Code)}, ui.Def{Term: "Took", Text: ui.Duration(d.Took)})
	}
	if d.Error != "" {
		facts = append(facts, ui.Def{Term: "Problem", Text: d.Error})
	}
	if !d.Next.IsZero() {
		facts = append(facts, ui.Def{Term: "Next try", Value: ui.Time(d.Next, s.Now())})
	}
	again := ui.Banner(ui.BannerModel{Tone: ui.ToneHold, Text: hookIsOff, Action: "Edit", ActionHref: route.AdminHookVerb(id, "edit")})
	if h.Enabled {
		again = adminview.Act(route.AdminDeliveryReplay(id, d.ID), ui.ButtonModel{Label: "Send again", Busy: "Sending…", Icon: "rotate", Submit: true})
	}
	m := adminview.PageModel{Title: "Delivery " + itoa(d.ID), State: deliveryState(d.Status), Parts: []templ.Component{ui.Definitions(facts), again,
		ui.Code(ui.CodeModel{ID: "body", Label: "request body", Text: prettyText(d.Body)}),
	}}
	return s.Sheet(w, r, actor, http.StatusOK, hooksFrame("Delivery "+itoa(d.ID), ui.Crumb{Label: h.Name, Href: route.AdminHook(id)}, ui.Crumb{Label: "Delivery " + itoa(d.ID)}), m)
}

func (s *Server) adminDeliveryReplay(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, delivery, err := pathDelivery(r)
	if err != nil {
		return err
	}
	d, err := s.Hooks.Replay(r.Context(), actor, id, delivery)
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminHook(id), httpx.Flash{Tone: "ok", Text: "Sending the notice again, as delivery " + itoa(d.ID) + "."})
}

func hooksFrame(title string, crumbs ...ui.Crumb) layout.Model {
	if len(crumbs) > 0 {
		crumbs = append([]ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Hooks", Href: route.AdminHooks()}}, crumbs...)
	}
	m := page.AdminFrame(title, route.AdminHooks(), crumbs...)
	if title != "Hooks" {
		m.Section = "Hooks"
	}
	return m
}

func (s *Server) adminHooks(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	hooks, err := s.Hooks.Hooks(r.Context(), actor)
	if err != nil {
		return err
	}
	add := ui.ButtonModel{Label: "New hook", Icon: "plus", Kind: ui.Primary, Href: route.AdminHookNew()}
	m := adminview.PageModel{
		Title: "Hooks", Actions: []ui.ButtonModel{add}, Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/hooks", "")},
		Intro: "A hook tells another system by HTTP when operations start and end. A blocking hook is asked first and may refuse.",
	}
	grid := adminview.TableModel{ID: "hooks", Caption: "Hooks of the tenant", Now: s.Now(),
		Columns: []ui.Column{{Label: "Name"}, {Label: "URL"}, {Label: "Tells of"}, {Label: "State"}, {Label: "Last delivery"}, {Label: "Failures, 24 h", Numeric: true}},
		Empty:   ui.EmptyModel{Icon: "external", Text: "There are no hooks yet. A hook calls an address of yours when an operation starts, succeeds or fails.", Action: ui.ButtonModel{Label: add.Label, Icon: add.Icon, Href: add.Href}}}
	outcomes, err := s.Hooks.Outcomes(r.Context(), actor)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		state, outcome := hookState(h), outcomes[h.ID]
		last := adminview.Cell{Text: "–"}
		if d := outcome.Last; d.ID != 0 {
			last = adminview.Cell{State: deliveryState(d.Status), Time: d.Created, Sub: page.CutShort(d.Error)}
		}
		failed := adminview.Cell{Text: strconv.Itoa(outcome.Failed)}
		if outcome.Failed > 0 {
			failed.Href = route.Query(route.AdminHook(h.ID), "result", string(loom.DeliveryFailed))
		}
		tells := adminview.Cell{Text: eventWords(h.Events), Sub: strings.Join(actionWords(h.Actions), ", ")}
		grid.Rows = append(grid.Rows, []adminview.Cell{
			{Text: h.Name, Href: route.AdminHook(h.ID), Sub: hookKind(h)}, {Text: h.URL, Mono: true}, tells, {State: &state}, last, failed,
		})
	}
	grid.CSV, grid.JSON = s.ExportsOf(r)
	m.Parts = []templ.Component{adminview.Table(grid)}
	return s.Sheet(w, r, actor, http.StatusOK, hooksFrame("Hooks"), m)
}

func hookState(h loom.Hook) ui.State {
	if h.Enabled {
		return ui.State{Word: "On", Icon: "check-circle", Tone: ui.ToneOK}
	}
	return ui.State{Word: "Off", Icon: "ban", Tone: ui.ToneIdle}
}

func hookKind(h loom.Hook) string {
	var words []string
	if h.Blocking {
		words = append(words, "blocking")
	}
	if h.Global {
		words = append(words, "for all tenants")
	}
	return strings.Join(words, ", ")
}

// eventWords are the events of a hook in one line.
func eventWords(events []loom.HookEvent) string {
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = page.Capital(string(e))
	}
	return strings.Join(words, ", ")
}

// actionWord is what people call an action: "Scale up".
func actionWord(a loom.ClusterAction) string {
	return page.Capital(strings.ReplaceAll(a.Verb(), "_", " "))
}

func actionWords(actions []loom.ClusterAction) []string {
	words := make([]string, len(actions))
	for i, a := range actions {
		words[i] = actionWord(a)
	}
	return words
}

// worded offers values by what people call them.
func worded[T ~string](values []T, word func(T) string) []form.Choice {
	choices := form.Names(values...)
	for i, v := range values {
		choices[i].Label = word(v)
	}
	return choices
}

// editHook is the form of a new hook, which has no id, or an old one. That only superadmins make one
// for all tenants is for the use case to say.
func editHook(actor loom.Actor, h loom.Hook) form.Edit {
	secret := ui.FieldModel{Label: "Secret", Kind: ui.FieldPassword, Optional: true, MaxLength: 200, Autocomplete: "off",
		Help: "Signs every delivery; 16–200 characters. If empty, one is generated, shown once."}
	if h.ID != 0 {
		secret.Label, secret.Help = "New secret", "16 to 200 characters; the present one stays when this is left empty. It is never shown."
	}
	var global form.Part = form.Field{Path: form.At("global"), Face: ui.FieldModel{Label: "For all tenants", Kind: ui.FieldCheckbox}}
	if actor.May(loom.Install, loom.Installation) != nil {
		global = form.Unshown{Part: global}
	}
	return form.Of(
		form.Field{Path: form.At("name"), Face: ui.FieldModel{Label: "Name", MaxLength: 100, Help: "Says what it is for, such as “tell the monitoring”."}},
		form.Field{Path: form.At("url"), Face: ui.FieldModel{Label: "URL", Mono: true, Width: "l", MaxLength: 2000, Placeholder: "https://ci.example/loom", Help: "Receives a POST with JSON."}},
		form.Picker{Path: form.At("events"), Legend: "Events", Help: "None chosen means those of operations: start, success and failure.", Choices: worded(loom.HookEvents, func(e loom.HookEvent) string { return page.Capital(string(e)) })},
		form.Picker{Path: form.At("actions"), Legend: "Only for these actions", Help: "None chosen means all.", Filter: "Filter actions", Choices: worded(loom.HookActions, actionWord)},
		form.Words{Path: form.At("templates"), Face: ui.FieldModel{Label: "Only for clusters of these templates", Mono: true, Optional: true, Width: "l", Help: "Names separated by spaces. Empty: all."}},
		form.Field{Path: form.At("blocking"), Face: ui.FieldModel{Label: "Ask before an operation starts (blocking)", Kind: ui.FieldCheckbox,
			Help: "The operation waits: 2xx lets it go, 409 refuses it with the reason in the answer."}},
		form.Field{Path: form.At("onTimeout"), Face: ui.FieldModel{Label: "If there is no valid answer", Kind: ui.FieldSelect, Width: "s", Optional: true,
			Options: page.Options("", loom.OnTimeoutRefuse, "refuse", loom.OnTimeoutGo, "allow")}},
		form.Field{Path: form.At("secret"), Face: secret},
		form.Field{Path: form.At("enabled"), Face: ui.FieldModel{Label: "On", Kind: ui.FieldCheckbox}},
		global,
		form.Fold{Title: "Advanced", Key: "advanced", Open: h.LegacyBody, Parts: []form.Part{
			form.Field{Path: form.At("legacyBody"), Face: ui.FieldModel{Label: "Legacy payload", Kind: ui.FieldCheckbox, Help: "Cluster, job and nodes, for existing receivers of that format."}}}},
	).Over(wire.NewHook(h))
}

// newHook is what the form of a new hook begins with.
var newHook = loom.Hook{Events: loom.OperationEvents, Enabled: true, OnTimeout: loom.OnTimeoutRefuse}

func (s *Server) adminHookNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.showHook(w, r, actor, http.StatusOK, newHook, editHook(actor, newHook))
}

// showHook answers with the form of a hook as it is stored.
func (s *Server) showHook(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, h loom.Hook, e form.Edit) error {
	shown := e.Shown()
	m := adminview.FormModel{Action: route.AdminHooks(), Errors: shown.Errors, Button: "Create hook", Busy: "Creating…", Cancel: route.AdminHooks(), Parts: shown.Parts()}
	frame := hooksFrame("New hook", ui.Crumb{Label: "New"})
	if h.ID != 0 {
		m.Action, m.Button, m.Busy, m.Cancel = route.AdminHook(h.ID), "Save hook", "Saving…", route.AdminHook(h.ID)
		frame = hooksFrame("Edit "+h.Name, ui.Crumb{Label: h.Name, Href: route.AdminHook(h.ID)}, ui.Crumb{Label: "Edit"})
	}
	return s.Sheet(w, r, actor, status, frame, adminview.PageModel{Parts: []templ.Component{adminview.Form(m)}})
}

// storeHook stores a hook as its form was sent; ok is false when the form was answered again.
func (s *Server) storeHook(w http.ResponseWriter, r *http.Request, actor loom.Actor, old loom.Hook, title string, store func(in hook.Input) error) (ok bool, err error) {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return false, err
	}
	e := editHook(actor, old)
	in, err := form.Decode(&e, values, wire.ReadHook)
	if err == nil {
		err = store(in)
	}
	if fields, status, refused := page.Refused(err); refused {
		return false, s.showHook(w, r, actor, status, old, e.Refused(title, fields))
	}
	return err == nil, err
}

// adminHookCreate stores a hook; a secret that was made up is in the answer.
func (s *Server) adminHookCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	var h loom.Hook
	var secret loom.Secret
	ok, err := s.storeHook(w, r, actor, newHook, "The hook was not created.", func(in hook.Input) (err error) {
		h, secret, err = s.Hooks.Create(r.Context(), actor, in)
		return err
	})
	if !ok {
		return err
	}
	if secret.IsZero() {
		return s.Say(w, r, route.AdminHook(h.ID), httpx.Flash{Tone: "ok", Text: "Created the hook " + h.Name + "."})
	}
	shown := adminview.Secret(adminview.SecretModel{
		Title: "Hook " + h.Name + " was created", Warning: "Copy the secret now. Loom shows it only once. It proves that a delivery is Loom's.", Back: route.AdminHook(h.ID), Button: "I have copied the secret",
		Facts: []ui.Def{{Term: "URL", Text: h.URL, Mono: true}, {Term: "Secret", Value: ui.CopyText(secret.Reveal(), "secret")},
			{Term: "How it signs", Text: "X-Loom-Signature: t=<seconds>,v1=<HMAC-SHA256 of “t.body”, hexadecimal>"}},
	})
	return s.Sheet(w, r, actor, http.StatusOK, hooksFrame(h.Name, ui.Crumb{Label: h.Name}), adminview.PageModel{Parts: []templ.Component{shown}})
}

func pathHook(r *http.Request) (loom.HookID, error) {
	n, err := page.PathNumber(r, "id", "hook")
	return loom.HookID(n), err
}

// ofHook reads the hook of the path.
func (s *Server) ofHook(r *http.Request, actor loom.Actor) (loom.Hook, error) {
	id, err := pathHook(r)
	if err != nil {
		return loom.Hook{}, err
	}
	return s.Hooks.Hook(r.Context(), actor, id)
}

func (s *Server) adminHookEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	return s.showHook(w, r, actor, http.StatusOK, h, editHook(actor, h))
}

func (s *Server) adminHookSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	ok, err := s.storeHook(w, r, actor, h, "The hook was not changed.", func(in hook.Input) (err error) {
		h, err = s.Hooks.Put(r.Context(), actor, h.ID, in)
		return err
	})
	if !ok {
		return err
	}
	return s.Say(w, r, route.AdminHook(h.ID), httpx.Flash{Tone: "ok", Text: "Saved the hook " + h.Name + "."})
}

func (s *Server) adminHookDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Button: "Delete hook " + h.Name, Busy: "Deleting…", Cancel: route.AdminHook(h.ID),
		Lines: []string{"Loom sends nothing more to " + h.URL + ", not even waiting deliveries, and deletes their log. Operations waiting for its answer continue."}}
	return s.Confirm(w, r, actor, hooksFrame("Delete hook "+h.Name, ui.Crumb{Label: h.Name, Href: route.AdminHook(h.ID)}, ui.Crumb{Label: "Delete"}), adminview.Confirm(m))
}

func (s *Server) adminHookDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	if err := s.Hooks.Delete(r.Context(), actor, h.ID); err != nil {
		return err
	}
	return s.Say(w, r, route.AdminHooks(), httpx.Flash{Tone: "ok", Text: "Deleted the hook " + h.Name + "."})
}

func itoa[T ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }
