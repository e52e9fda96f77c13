package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/hook"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/officeview"
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
func (s *Server) hookPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, tried *hook.Tried) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	result, filter := q.Get("result"), hook.Filter{}
	if _, known := deliveryStates[loom.DeliveryStatus(result)]; known {
		filter.Statuses = []loom.DeliveryStatus{loom.DeliveryStatus(result)}
	}
	list, err := s.Hooks.Deliveries(r.Context(), actor, h.ID, filter, s.pageOf(r))
	if err != nil {
		return err
	}
	state := hookState(h)
	m := officeview.SheetModel{Title: h.Name, State: &state, Actions: []ui.ButtonModel{
		{Label: "Edit", Small: true, Href: route.AdminHookVerb(h.ID, "edit")}, opening("Delete", "", route.AdminHookVerb(h.ID, "delete"), ui.Danger)},
		Calls: []ui.JSONCall{call("read", http.MethodGet, "/v2/hooks/"+itoa(h.ID), ""), call("deliveries", http.MethodGet, "/v2/hooks/"+itoa(h.ID)+"/deliveries", "")}}
	if !h.Enabled {
		m.Banners = []ui.BannerModel{{Tone: ui.ToneHold, Text: hookIsOff, Action: "Edit", ActionHref: route.AdminHookVerb(h.ID, "edit")}}
	}
	if tried != nil {
		m.Parts = append(m.Parts, triedPart(*tried))
	}
	filters := officeview.FiltersModel{Action: route.AdminHook(h.ID), Target: "deliveries-list", Fields: []ui.FieldModel{
		{Name: "result", Label: "Result", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true,
			Options: options(result, "", "All results", "delivered", "Delivered", "waiting", "Waiting", "failed", "Failed", "refused", "Refused")}}}
	if result != "" {
		filters.Clear = route.AdminHook(h.ID)
	}
	grid := s.deliveryGrid(h, list, result)
	grid.CSV, grid.JSON = s.exportsAt(route.AdminDeliveries(h.ID), q)
	m.Parts = append(m.Parts, ui.Definitions(hookFacts(h)),
		officeview.Act(route.AdminHookVerb(h.ID, "test"), ui.ButtonModel{Label: "Send a test", Busy: "Sending…", Icon: "play", Submit: true}),
		officeview.Card("deliveries-title", "Deliveries", officeview.Filters(filters), officeview.Grid(grid)))
	return s.sheet(w, r, actor, http.StatusOK, hooksFrame(h.Name, ui.Crumb{Label: h.Name}), m)
}

func hookFacts(h loom.Hook) []ui.Def {
	all := func(text string) string {
		if text == "" {
			return "all"
		}
		return text
	}
	facts := []ui.Def{{Term: "Address", Text: h.URL, Mono: true}, {Term: "Events", Text: hookWords(h.Events)},
		{Term: "Actions", Text: all(hookWords(h.Actions))}, {Term: "Templates", Text: all(hookWords(h.Templates))}, {Term: "Secret", Text: "set and sealed; never shown"}}
	if h.Blocking {
		facts = append(facts, ui.Def{Term: "Blocking", Text: map[string]string{loom.OnTimeoutGo: "yes; without an answer the operation goes", loom.OnTimeoutRefuse: "yes; without an answer the operation is refused"}[h.OnTimeout]})
	}
	if h.Global {
		facts = append(facts, ui.Def{Term: "For", Text: "all tenants"})
	}
	if h.LegacyBody {
		facts = append(facts, ui.Def{Term: "Body", Text: "that of the predecessor"})
	}
	return facts
}

// hookIsOff says why nothing is sent again.
const hookIsOff = "The hook is off, so nothing is sent to it, also not again. Edit it to switch it on."

func (s *Server) deliveryGrid(h loom.Hook, list hook.List, result string) officeview.GridModel {
	id := h.ID
	m := officeview.GridModel{ID: "deliveries", Caption: "Deliveries, the newest first", Now: s.now(),
		Columns: []ui.Column{{Label: "Delivery"}, {Label: "Event"}, {Label: "Result"}, {Label: "Operation"}, {Label: "Tries", Numeric: true, Low: true}, {Label: "When"}, {Label: "Actions", LabelHidden: true}},
		Pages:   turned("Pages of deliveries", route.AdminHook(id), list.Next, list.Prev, "result", result),
		Empty:   ui.EmptyModel{Icon: "external", Text: "Nothing was sent yet. Send a test, or start an operation."}}
	if result != "" {
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No delivery has this result."}
	}
	if !h.Enabled {
		m.Columns = m.Columns[:len(m.Columns)-1]
	}
	for _, d := range list.Items {
		outcome := officeview.Cell{State: deliveryState(d.Status), Sub: d.Error}
		m.Rows = append(m.Rows, []officeview.Cell{
			{Text: itoa(d.ID), Href: route.AdminDelivery(id, d.ID), Mono: true}, {Text: string(d.Event)},
			outcome, {Text: d.Operation.String(), Href: route.Operation(d.Operation), Mono: true}, {Text: strconv.Itoa(d.Tries)}, {Time: d.Created}})
		if h.Enabled {
			m.Rows[len(m.Rows)-1] = append(m.Rows[len(m.Rows)-1], officeview.Cell{Part: officeview.Act(route.AdminDeliveryReplay(id, d.ID), ui.ButtonModel{Label: "Send again", Small: true, Submit: true, Busy: "Sending…", Attrs: templ.Attributes{"aria-label": "Send again: delivery " + itoa(d.ID)}})})
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

func triedPart(t hook.Tried) templ.Component {
	banner := ui.BannerModel{Tone: ui.ToneOK, Text: "The endpoint answered " + answered(t.Code) + " after " + ui.Duration(t.Took) + "."}
	if !t.OK {
		banner = ui.BannerModel{Tone: ui.ToneBad, Text: t.Problem}
	}
	parts := []templ.Component{ui.Banner(banner), ui.Code(ui.CodeModel{ID: "test-body", Label: "what was sent", Text: prettyText(t.Body), Wrap: true})}
	if t.Answer != "" {
		parts = append(parts, ui.Code(ui.CodeModel{ID: "test-answer", Label: "what came back", Text: t.Answer, Wrap: true}))
	}
	return officeview.Card("test-title", "Test", parts...)
}

// prettyText indents JSON; other text stays as it is.
func prettyText(text string) string {
	if tree := parseTree([]byte(text)); tree != nil {
		return prettyJSON(tree)
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
	n, err := pathNumber(r, "delivery", "delivery")
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
		{Term: "Event", Text: string(d.Event)}, {Term: "Operation", Value: officeview.Link(d.Operation.String(), route.Operation(d.Operation))},
		{Term: "Happened", Value: ui.Time(d.Time, s.now())}, {Term: "Tries", Text: strconv.Itoa(d.Tries)},
	}
	if d.Tries > 0 {
		facts = append(facts, ui.Def{Term: "Answer", Text: answered(d.Code)}, ui.Def{Term: "Took", Text: ui.Duration(d.Took)})
	}
	if d.Error != "" {
		facts = append(facts, ui.Def{Term: "Problem", Text: d.Error})
	}
	if !d.Next.IsZero() {
		facts = append(facts, ui.Def{Term: "Next try", Value: ui.Time(d.Next, s.now())})
	}
	again := ui.Banner(ui.BannerModel{Tone: ui.ToneHold, Text: hookIsOff, Action: "Edit", ActionHref: route.AdminHookVerb(id, "edit")})
	if h.Enabled {
		again = officeview.Act(route.AdminDeliveryReplay(id, d.ID), ui.ButtonModel{Label: "Send again", Busy: "Sending…", Icon: "rotate", Submit: true})
	}
	m := officeview.SheetModel{Title: "Delivery " + itoa(d.ID), State: deliveryState(d.Status), Parts: []templ.Component{ui.Definitions(facts), again,
		ui.Code(ui.CodeModel{ID: "body", Label: "what was sent", Text: prettyText(d.Body)}),
	}}
	return s.sheet(w, r, actor, http.StatusOK, hooksFrame("Delivery "+itoa(d.ID), ui.Crumb{Label: h.Name, Href: route.AdminHook(id)}, ui.Crumb{Label: "Delivery " + itoa(d.ID)}), m)
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
	return s.say(w, r, route.AdminHook(id), httpx.Flash{Tone: "ok", Text: "Sending the notice again, as delivery " + itoa(d.ID) + "."})
}
