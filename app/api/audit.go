package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/httpx"
	"loom/app/loom"
)

var auditResults = []string{"ok", "refused", "failed"}

func (a *api) auditRoutes() []route {
	return []route{
		{method: get, path: "/v2/audit", verb: loom.Read, summary: "List who did what: one's own acts, for administrators the tenant's", fresh: true, paged: true,
			answer: "[]AuditEntry", handle: a.listAudit, query: []param{
				{"tenant", "string", "For superadmins: a tenant by name, a deleted one too, or “*” for all."},
				{"actor", "string", "User ids, separated by commas."},
				{"verb", "string", "Verbs, separated by commas, such as update."},
				{"kind", "string", "Kinds of objects, separated by commas, such as cluster."},
				{"object", "string", "The object, as entries name it."},
				{"result", "string", "Results, separated by commas: ok, refused, failed."},
				{"from", "string", "An address, session, or the name of a token."},
				{"request", "string", "The id of a request."},
				{"since", "integer", "Milliseconds since 1970; entries from then on."},
				{"until", "integer", "Milliseconds since 1970; entries before."},
			}},
	}
}

func (a *api) listAudit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	in := account.AuditInput{Page: page, Tenant: q.Get("tenant"), AuditFilter: account.AuditFilter{
		Actors: strings.FieldsFunc(q.Get("actor"), func(c rune) bool { return c == ',' }),
		Verbs:  words(q.Get("verb")), Kinds: strings.FieldsFunc(q.Get("kind"), func(c rune) bool { return c == ',' }), Object: q.Get("object"), From: q.Get("from"), Request: q.Get("request"),
	}}
	if in.Results, err = oneOf(r, "result", auditResults); err != nil {
		return err
	}
	if in.Since, err = queryTime(r, "since"); err != nil {
		return err
	}
	if in.Until, err = queryTime(r, "until"); err != nil {
		return err
	}
	list, err := a.Accounts.Audit(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, func(e loom.AuditEntry) wire.AuditEntry {
		out := wire.NewAuditEntry(e)
		if in.Tenant != "" {
			out.Tenant = e.Actor.TenantName
		}
		return out
	}, list.Next, list.Prev)
}

// queryTime reads milliseconds since 1970, the zero time when absent.
func queryTime(r *http.Request, name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	// Beyond the year 9999 the database has no times.
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 253402300799999 {
		return time.Time{}, loom.InvalidFields([]loom.FieldError{{Field: name,
			Message: fmt.Sprintf("“%.40s” is no time in milliseconds since 1970.", text)}})
	}
	return time.UnixMilli(n), nil
}

// noteRefusal keeps in the audit that somebody was refused what would have
// changed something, or the sight of a machine's sign-in. That it cannot be kept
// changes no answer.
func (a *api) noteRefusal(r *http.Request, rt *route, actor loom.Actor, err error) {
	e := loom.AsError(err)
	reveal := strings.HasSuffix(rt.path, "/reveal")
	if actor.User == "" || rt.method == get || e.Kind != loom.Forbidden && !(reveal && e.Kind == loom.NotFound) {
		return
	}
	verb, kind := refused(rt)
	object := strings.TrimPrefix(r.URL.Path, "/v2/")
	if failed := a.Accounts.RecordRefused(r.Context(), actor, verb, kind, object, e.Message); failed != nil && r.Context().Err() == nil {
		a.Log.Error("a refusal could not be recorded", "request_id", httpx.RequestID(r), "error", failed.Error())
	}
}

// refused gives verb and kind of a route in the words of the audit.
func refused(rt *route) (verb, kind string) {
	verb = map[string]string{post: "create", put: "update", patch: "update", del: "delete"}[rt.method]
	segments := strings.Split(strings.TrimPrefix(rt.path, "/v2/"), "/")
	var fixed []string
	for _, s := range segments {
		if !strings.HasPrefix(s, "{") {
			fixed = append(fixed, s)
		}
	}
	last := fixed[len(fixed)-1]
	if slices.Contains([]string{"import", "sync", "stage", "recall", "release", "apply", "abort", "pause", "resume", "retry", "rollback", "skip", "reveal"}, last) {
		verb, fixed = last, fixed[:max(1, len(fixed)-1)]
	}
	// The innermost thing that the path names.
	for i := len(fixed) - 1; i >= 0; i-- {
		if word := auditKind(fixed[i]); word != "" {
			return verb, word
		}
	}
	return verb, fixed[0]
}

func auditKind(segment string) string {
	if kind := loom.EntityKind(segment); kind.Valid() {
		return kind.Word()
	}
	return map[string]string{
		"clusters": "cluster", "operations": "operation", "nodes": "node", "tenants": "tenant", "users": "user", "tokens": "token",
		"sessions": "session", "hooks": "hook", "settings": "settings", "plugins": "resource", "previews": "preview", "import": "catalog",
		"groups": "group", "identity-providers": "identity_provider", "members": "group", "bindings": "binding", "access": "binding",
		"processes": "process", "orphans": "orphan", "sweeps": "provider", "profile": "user",
	}[segment]
}
