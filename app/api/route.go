package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"loom/app/httpx"
	"loom/app/loom"
)

// route is a row of the table: what is served, and what the OpenAPI document
// says of it.
type route struct {
	method, path string
	summary      string
	// open routes need no identity; others name the verb that is asked for before the
	// request is read, the Reading of it where the method is GET. The use case asks again,
	// about the object.
	open bool
	verb loom.Verb
	// probe routes are open ones that are always answered, whatever the query is.
	probe bool
	// fresh routes are Loom's own: an unknown parameter is refused, and 503 exists.
	fresh bool
	// strict routes are old ones that refuse an unknown parameter all the same.
	strict bool
	// findings routes say in the header Loom-Findings how much would not work.
	findings bool
	// paged lists take limit, sort, after and before.
	paged bool
	// once routes honour an Idempotency-Key; its answer is kept without secrets.
	once bool
	// begins routes name the operation that they began in the header Loom-Operation.
	begins bool
	// matches routes honour If-Match with the version that the author started from.
	matches bool
	// parameters of the query besides paging.
	query []param
	// body and answer name schemas of wire; "[]X" is an array of X, "{}X" an object
	// of them, "" nothing. An optional body ends in "?".
	body, answer string
	// success is the status of success where it is not 200.
	success int
	// media are the content types of the answer, JSON when empty.
	media  []string
	handle httpx.ActorHandler
}

// param is a parameter of a query.
type param struct{ name, kind, help string }

const (
	mediaJSON = "application/json"
	mediaText = "text/plain"
	// mediaMarkdown is for a comment on a change of the catalog.
	mediaMarkdown = "text/markdown"
	mediaStream   = "text/event-stream"
	mediaBytes    = "application/octet-stream"
	mediaKey      = "application/x-pem-file"
	// mediaArchive is a catalog as a packed folder.
	mediaArchive = "application/gzip"
)

var pagingParams = []param{
	{"limit", "integer", "Rows per page, 1–500."},
	{"sort", "string", "A field of the list, with “-” before it for descending."},
	{"after", "string", "Cursor of the page before, from the header Link."},
	{"before", "string", "Cursor of the page after, from the header Link."},
}

func (rt *route) params() []param {
	if rt.paged {
		return append(slices.Clone(rt.query), pagingParams...)
	}
	return rt.query
}

// handler builds the mux. Paths are registered without methods so that a wrong
// method gets a problem, like any other error.
func (a *api) handler() http.Handler {
	table := map[string]map[string]http.Handler{}
	for _, rt := range a.routes() {
		if table[rt.path] == nil {
			table[rt.path] = map[string]http.Handler{}
		}
		table[rt.path][rt.method] = a.serve(rt)
	}
	mux := http.NewServeMux()
	for pattern, methods := range table {
		mux.Handle(pattern, dispatch(methods))
	}
	for _, pattern := range []string{"/v2/provisioners", "/v2/provisioners/{id}"} {
		for _, method := range []string{post, put, del} {
			mux.HandleFunc(method+" "+pattern, noWorkers)
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Problem(w, r, loom.NewError(loom.NotFound, "There is nothing at this path; GET /v2/openapi.json lists all that is."))
	})
	return normalize(mux)
}

// noWorkers answers what the predecessor's workers send.
func noWorkers(w http.ResponseWriter, r *http.Request) {
	Problem(w, r, loom.NewError(loom.NotFound, "Loom has no routes for legacy workers: provisioners take their tasks from the database. Start one with “loom provisioner”."))
}

func dispatch(methods map[string]http.Handler) http.Handler {
	allowed := slices.Collect(maps.Keys(methods))
	if methods[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet // the server leaves the body out
		}
		if h := methods[method]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		httpx.SendProblem(w, httpx.Problem{
			Type: "urn:loom:error:method-not-allowed", Title: "Not this method", Status: http.StatusMethodNotAllowed,
			Detail: fmt.Sprintf("This path takes %s.", allow), Instance: httpx.RequestID(r),
		})
	})
}

// normalize resolves dot segments and strips the trailing slash that old clients
// send; the mux would answer both with a redirect. A slash that is escaped within
// a segment stays.
func normalize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := path.Clean("/" + strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		if escaped != r.URL.EscapedPath() {
			plain, err := url.PathUnescape(escaped)
			if err != nil {
				Problem(w, r, loom.NewError(loom.Invalid, "The path is not escaped properly."))
				return
			}
			clone := *r
			u := *r.URL
			u.Path, u.RawPath = plain, escaped
			clone.URL = &u
			r = &clone
		}
		next.ServeHTTP(w, r)
	})
}

// serve is one route with all that happens around its handler.
func (a *api) serve(rt route) http.Handler {
	render := Problem
	if rt.fresh {
		render = newProblem
	}
	handle := rt.handle
	if !rt.open {
		handle = ask(&rt, handle)
	}
	if rt.once {
		handle = a.once(handle)
	}
	if rt.probe {
		return httpx.Wrap(a.Log, render, func(w http.ResponseWriter, r *http.Request) error { return handle(w, r, loom.Actor{}) })
	}
	return httpx.Wrap(a.Log, render, func(w http.ResponseWriter, r *http.Request) error {
		var actor loom.Actor
		var err error
		switch {
		case !rt.open:
			actor, err = a.identify(r)
		case len(r.URL.RawQuery) > maxOpenQuery: // it is not even read
			err = loom.NewError(loom.Invalid, "The query is longer than %d bytes; this path takes no parameters.", maxOpenQuery)
		default:
			err = httpx.Claim(r, httpx.FileCaller(r))
		}
		if err != nil {
			return err
		}
		if !storable(r.URL.Path) {
			return loom.NewError(loom.NotFound, "There is nothing of this name: it is not UTF-8, or holds the character NUL.")
		}
		if err := rt.checkQuery(r.URL.Query()); err != nil {
			return err
		}
		ctx, release := shared(r.Context(), decoding)
		defer release()
		err = a.known(w, r.WithContext(ctx), actor, handle)
		if err != nil {
			a.noteRefusal(r, &rt, actor, err)
		}
		return err
	})
}

// ask asks for the verb of a route before it is handled.
func ask(rt *route, handle httpx.ActorHandler) httpx.ActorHandler {
	verb := rt.verb
	if rt.method == get {
		verb = verb.Reading()
	}
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		if err := actor.MayAtAll(verb); err != nil {
			return err
		}
		return handle(w, r, actor)
	}
}

// maxOpenQuery is the longest query of an open route, in bytes.
const maxOpenQuery = 1 << 8

// storable keeps away from the database what no text in it can be.
func storable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// checkQuery refuses values that no text can be, and parameters that a new or
// strict route does not have. Old routes ignore those, as their clients rely on.
func (rt *route) checkQuery(query url.Values) error {
	var known []string
	for _, p := range rt.params() {
		known = append(known, p.name)
	}
	var errs []loom.FieldError
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case len(errs) == loom.MaxFieldErrors:
			return loom.InvalidFields(errs) // what is wrong beyond these is not looked for
		case !storable(strings.Join(query[name], "")):
			errs = append(errs, loom.FieldError{Field: strings.ToValidUTF8(name, "?"), Message: "This is not UTF-8, or holds the character NUL."})
		case !rt.fresh && !rt.strict || slices.Contains(known, name):
		case len(known) == 0:
			errs = append(errs, loom.FieldError{Field: name, Message: "There is no such parameter; this path takes none."})
		case loom.Nearest(name, known) != "":
			errs = append(errs, loom.FieldError{Field: name, Message: "There is no such parameter; did you mean “" + loom.Nearest(name, known) + "”? This path takes " + strings.Join(known, ", ") + "."})
		default:
			errs = append(errs, loom.FieldError{Field: name, Message: "There is no such parameter; this path takes " + strings.Join(known, ", ") + "."})
		}
	}
	return loom.InvalidFields(errs)
}
