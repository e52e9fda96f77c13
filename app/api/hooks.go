package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"loom/app/api/wire"
	"loom/app/hook"
	"loom/app/loom"
)

func (a *api) hookRoutes() []route {
	const one = "/v2/hooks/{id}"
	return []route{
		{method: get, path: "/v2/hooks", verb: loom.Administer, summary: "List the hooks of the tenant", fresh: true, paged: true, answer: "[]Hook", handle: a.listHooks, query: []param{
			{"q", "string", "Words in name or address."},
		}},
		{method: post, path: "/v2/hooks", verb: loom.Administer, summary: "Create a hook; a generated secret is shown once", fresh: true, once: true,
			body: "HookWrite", answer: "Hook", handle: a.createHook},
		{method: get, path: one, verb: loom.Administer, summary: "Read a hook", fresh: true, answer: "Hook", handle: a.showHook},
		{method: put, path: one, verb: loom.Administer, summary: "Replace a hook; without a secret it keeps its own", fresh: true, body: "HookWrite", answer: "Hook", handle: a.putHook},
		{method: del, path: one, verb: loom.Administer, summary: "Delete a hook with its deliveries", fresh: true, handle: a.deleteHook},
		{method: get, path: one + "/deliveries", verb: loom.Administer, summary: "List deliveries to a hook, newest first", fresh: true, paged: true,
			answer: "[]Delivery", handle: a.listDeliveries, query: []param{
				{"result", "string", "Statuses, separated by commas: waiting, delivered, refused, failed."},
				{"since", "integer", "Milliseconds since 1970; events from then on."},
			}},
		{method: post, path: one + "/deliveries/{d}/replay", verb: loom.Administer, summary: "Send a notice once more", fresh: true, once: true, answer: "Delivery", handle: a.replayDelivery},
	}
}

// hookID reads the hook of a path.
func hookID(r *http.Request) (loom.HookID, error) {
	n, err := pathNumber(r, "id", "hook")
	return loom.HookID(n), err
}

func (a *api) listHooks(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	hooks, err := a.Hooks.Hooks(r.Context(), actor)
	if err != nil {
		return err
	}
	words, err := loom.SearchWords(r.URL.Query().Get("q"))
	if err != nil {
		return err
	}
	var found []loom.Hook
	for _, h := range hooks {
		if hookHas(h.Name+"\n"+h.URL, words) {
			found = append(found, h)
		}
	}
	id := func(h loom.Hook) string { return byNumber(int(h.ID)) }
	name := func(h loom.Hook) string { return h.Name + "\x00" + id(h) }
	created := func(h loom.Hook) string { return byNumber(int(h.Created.UnixMilli())) + id(h) }
	return answerList(w, r, true, found, wire.NewHook, order[loom.Hook]{"name", name}, order[loom.Hook]{"-name", name},
		order[loom.Hook]{"createTime", created}, order[loom.Hook]{"-createTime", created})
}

// hookHas reports whether every word of a search is in a text, in any case.
func hookHas(text string, words []string) bool {
	text = strings.ToLower(text)
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// readHook reads the hook that a request describes. Invalid.
func readHook(w http.ResponseWriter, r *http.Request) (hook.Input, error) {
	body, err := readBody(w, r)
	if err != nil {
		return hook.Input{}, err
	}
	return wire.ReadHook(body)
}

func (a *api) createHook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	in, err := readHook(w, r)
	if err != nil {
		return err
	}
	h, secret, err := a.Hooks.Create(r.Context(), actor, in)
	if err != nil {
		return err
	}
	out := wire.NewHook(h)
	out.Secret = secret.Reveal()
	return answer(w, r, out)
}

func (a *api) showHook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := hookID(r)
	if err != nil {
		return err
	}
	h, err := a.Hooks.Hook(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewHook(h))
}

func (a *api) putHook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := hookID(r)
	if err != nil {
		return err
	}
	in, err := readHook(w, r)
	if err != nil {
		return err
	}
	h, err := a.Hooks.Put(r.Context(), actor, id, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewHook(h))
}

func (a *api) deleteHook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := hookID(r)
	if err != nil {
		return err
	}
	if err := a.Hooks.Delete(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}

func (a *api) listDeliveries(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := hookID(r)
	if err != nil {
		return err
	}
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	var f hook.Filter
	if f.Statuses, err = oneOf(r, "result", loom.DeliveryStatuses); err != nil {
		return err
	}
	if f.Since, err = sinceOf(r); err != nil {
		return err
	}
	found, err := a.Hooks.Deliveries(r.Context(), actor, id, f, page)
	if err != nil {
		return err
	}
	linkPages(w, r, found.Next, found.Prev)
	out := make([]wire.Delivery, len(found.Items))
	for i, d := range found.Items {
		out[i] = wire.NewDelivery(d)
	}
	return answer(w, r, out)
}

// sinceOf reads milliseconds since 1970, the zero time when absent.
func sinceOf(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get("since")
	if text == "" {
		return time.Time{}, nil
	}
	n, ok := wire.ReadMillis(text)
	if !ok {
		return time.Time{}, loom.InvalidFields([]loom.FieldError{{Field: "since", Message: "This is a time in milliseconds since 1970."}})
	}
	return time.UnixMilli(n), nil
}

func (a *api) replayDelivery(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := hookID(r)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(r.PathValue("d"), 10, 64)
	if err != nil || n <= 0 {
		return loom.NewError(loom.NotFound, "The hook has no delivery “%.40s”.", r.PathValue("d"))
	}
	d, err := a.Hooks.Replay(r.Context(), actor, id, loom.DeliveryID(n))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewDelivery(d))
}
