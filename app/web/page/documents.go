package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// Document is what the REST API has for a page. The API itself answers it, with the
// session of whoever asks, so that it is exactly the same.
type Document struct {
	// path of the API; {x} is the part of the page's path of that name, {me} the user.
	Path string
	// list says that the answer is an array; fresh, that the API answers it in pages.
	List, Fresh bool
	// query gives the API's parameters for those of the page; nil: none.
	Query func(page url.Values) url.Values
	// columns are those of a CSV file, as "head=member" or "head=outer.member"; "@"
	// before the member says that it is a time in milliseconds since 1970.
	Columns []string
	// calls are what else can be done, with the same placeholders, and what ofDocument
	// puts into bodies.
	Calls []DocumentCall
	// draft gives the members that bodies of calls name, where they come from a form that
	// was not sent yet; nil: those of the document.
	Draft func(r *http.Request, actor loom.Actor, fields map[string]any) map[string]any
}

// DocumentCall is a call of the REST API that a page names.
type DocumentCall struct{ label, method, path, body string }

// Values of the parameter "as".
const (
	asJSON = "json"     // the answer of the API
	asPane = "pane"     // the same for people, with the calls
	AsCSV  = "csv"      // all rows of a list for spreadsheets
	AsAll  = "json-all" // all rows of a list
)

// maxPane is how much of a document the pane shows, in bytes.
const maxPane = 200_000

// exportRows is how many rows of a list are asked for at a time.
const exportRows = 500

// documentOf gives what the API has for the page of a request.
func (s *Shared) documentOf(r *http.Request) (Document, bool) {
	if s.API == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return Document{}, false
	}
	d, ok := s.documents[r.Pattern]
	return d, ok
}

// paneOf is the address of the pane of the page, "" where there is none.
func (s *Shared) paneOf(r *http.Request) string {
	if _, ok := s.documentOf(r); !ok || r.URL.Query().Has("as") {
		return ""
	}
	return route.Pane(r.URL.RequestURI())
}

// document answers a page that is asked for as JSON. It reports false where the page
// itself is to be shown.
func (s *Shared) document(w http.ResponseWriter, r *http.Request, actor loom.Actor) (answered bool, err error) {
	as := r.URL.Query().Get("as")
	d, ok := s.documentOf(r)
	if as == "" || !ok {
		return false, nil
	}
	switch {
	case as == asJSON:
		s.API.ServeHTTP(w, s.toAPI(r, s.target(r, actor, d, true)))
		return true, nil
	case as == asPane:
		return true, s.pane(w, r, actor, d)
	case as == AsAll && d.List:
		return true, s.exportJSON(w, r, actor, d)
	case as == AsCSV && len(d.Columns) > 0:
		return true, s.exportCSV(w, r, actor, d)
	}
	return false, nil
}

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// filled puts the parts of the page's path into a path of the API.
func filled(path string, r *http.Request, actor loom.Actor) string {
	return placeholder.ReplaceAllStringFunc(path, func(name string) string {
		name = name[1 : len(name)-1]
		part := route.Segment(r.PathValue(name))
		if name == "me" {
			part = string(actor.User)
		}
		// "$" would be read by a shell.
		return strings.ReplaceAll(url.PathEscape(part), "$", "%24")
	})
}

// target is the path and query of the API for a page. whole asks new lists for as
// much as they give at once.
func (s *Shared) target(r *http.Request, actor loom.Actor, d Document, whole bool) string {
	q := url.Values{}
	if d.Query != nil {
		for key, values := range d.Query(spanOf(ui.ViewerOf(r.Context()), s.Now(), r.URL.Query())) {
			if len(values) > 0 && values[0] != "" {
				q.Set(key, values[0])
			}
		}
	}
	for key, values := range q {
		if values[0] == "{me}" {
			q.Set(key, string(actor.User))
		}
	}
	if d.Fresh && d.List && whole {
		q.Set("limit", "500")
	}
	return withQuery(filled(d.Path, r, actor), q)
}

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// toAPI makes a request for the API of one for a page; the session stays.
func (s *Shared) toAPI(r *http.Request, target string) *http.Request {
	sub := r.Clone(r.Context())
	u, err := url.Parse(target)
	if err != nil {
		u = &url.URL{Path: "/v2/"} // targets are made of escaped parts
	}
	sub.URL, sub.RequestURI, sub.Method, sub.Body, sub.ContentLength = u, target, http.MethodGet, http.NoBody, 0
	for _, name := range []string{"If-None-Match", "If-Match", "Range"} {
		sub.Header.Del(name)
	}
	return sub
}

// kept is an answer of the API in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is that of the answer.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader keeps the status.
func (k *kept) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

// Write keeps a part of the body.
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }

// askAPI gives the answer of the API, or its error as one of ours.
func (s *Shared) askAPI(r *http.Request, target string) (*kept, error) {
	k := &kept{header: http.Header{}}
	s.API.ServeHTTP(k, s.toAPI(r, target))
	if k.status == 0 || k.status < 300 {
		return k, nil
	}
	var problem httpx.Problem
	if err := json.Unmarshal(k.body.Bytes(), &problem); err != nil || problem.Detail == "" {
		return nil, loom.NewError(loom.Unavailable, "The REST API answers with status %d.", k.status)
	}
	return nil, &loom.Error{Kind: loom.Kind(strings.TrimPrefix(problem.Type, "urn:loom:error:")), Message: problem.Detail, Fields: problem.Errors}
}

// pane shows the document with the calls that do the same, in the dialog or as a page.
func (s *Shared) pane(w http.ResponseWriter, r *http.Request, actor loom.Actor, d Document) error {
	q := r.URL.Query()
	q.Del("as")
	page := withQuery(r.URL.EscapedPath(), q)
	read := s.target(r, actor, d, true)
	shown := read
	if d.List { // the pane shows the beginning, the file has all
		u, err := url.Parse(read)
		if err != nil {
			return err
		}
		query := u.Query()
		query.Set("limit", "25")
		shown = withQuery(u.EscapedPath(), query)
	}
	m := sharedview.PaneModel{Back: page, Raw: route.Export(page, asJSON), Server: s.Origin(r), Tokens: route.AccountTokens()}
	answer, err := s.askAPI(r, shown)
	switch e := loom.AsError(err); {
	case err == nil:
		m.Text, m.Cut = paneText(answer.body.Bytes())
		m.Part = d.List && answer.header.Get("Link") != ""
	case e.Kind == loom.NotFound && d.Path != "/v2/profile" || e.Kind == loom.Forbidden || e.Kind == loom.Internal:
		return err
	default:
		m.Problem = e.Message
	}
	m.Calls = []ui.JSONCall{Call("Read", http.MethodGet, read, "")}
	if d.List {
		m.Calls[0].Label = "List with the present filters"
	}
	var fields map[string]any
	if err == nil {
		fields = exampleFields(d, answer.body.Bytes())
		if d.Draft != nil {
			fields = d.Draft(r, actor, fields)
		}
	}
	for _, c := range d.Calls {
		m.Calls = append(m.Calls, Call(c.label, c.method, filled(c.path, r, actor), OfDocument(ofPath(c.body, r), fields)))
	}
	if Wants(r, DialogID) {
		return s.Fragment(w, r, http.StatusOK, sharedview.PaneDialog(m))
	}
	frame := layout.Model{Title: "API and JSON", Area: layout.AreaClusters}
	switch {
	case strings.HasPrefix(r.URL.Path, route.System()):
		frame = SystemFrame("API and JSON", "")
	case strings.HasPrefix(r.URL.Path, route.Admin()):
		frame = AdminFrame("API and JSON", "")
	case strings.HasPrefix(r.URL.Path, route.Account()):
		frame = AccountFrame("API and JSON", "")
	}
	frame.Crumbs = nil
	return s.Render(w, r, actor, http.StatusOK, frame, sharedview.PanePage(m))
}

// paneText writes a document for people, and says whether the end is left out.
func paneText(body []byte) (text string, cut bool) {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return string(bytes.ToValidUTF8(body, []byte("?"))), false
	}
	if b.Len() > maxPane {
		return strings.ToValidUTF8(string(b.Bytes()[:maxPane]), "") + "\n…", true
	}
	return b.String(), false
}

// member0 is {doc} for all of the document, {doc.x} for a member of it, and {doc.x|…}
// with what stands there without one.
var member0 = regexp.MustCompile(`\{doc(?:\.([a-zA-Z]+)(?:\|([^|{}]*|\{\}))?)?\}`)

// OfDocument puts the document or members of it into the body of a call, as JSON.
func OfDocument(body string, fields map[string]any) string {
	return member0.ReplaceAllStringFunc(body, func(name string) string {
		part := member0.FindStringSubmatch(name)
		if part[1] == "" {
			return CompactJSON(fields)
		}
		if value, ok := fields[part[1]]; ok && value != nil {
			return CompactJSON(value)
		}
		return cmp.Or(part[2], `""`)
	})
}

// AuditColumns are those of the audit as a CSV file.
var AuditColumns = []string{"time=@time", "tenant=tenant", "actor=actor", "via=via", "address=address", "verb=verb", "kind=kind", "object=object", "result=result", "request=requestId"}

// SameParams hands these parameters on.
func SameParams(names ...string) func(url.Values) url.Values {
	return func(page url.Values) url.Values {
		q := url.Values{}
		for _, name := range names {
			q.Set(name, page.Get(name))
		}
		return q
	}
}

// FixedParams hands on what is given in pairs, besides the same parameters.
func FixedParams(pairs []string, names ...string) func(url.Values) url.Values {
	return func(page url.Values) url.Values {
		q := SameParams(names...)(page)
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return q
	}
}

// APICall names a call of the REST API; the body has placeholders.
func APICall(label, method, path, body string) DocumentCall {
	return DocumentCall{label, method, path, body}
}

// Paths of a cluster and of the template that users see.
const (
	ClusterDocument  = "/v2/clusters/{cluster}"
	TemplateDocument = "/v2/clustertemplates/{template}"
)

// EntryColumns are those of a list of catalog entries as a CSV file.
var EntryColumns = []string{"name=name", "label=label", "description=description", "version=version", "deprecated=deprecated"}

// AuditParams gives the API's parameters for the filters of the audit.
func AuditParams(page url.Values) url.Values {
	return SameParams("actor", "verb", "kind", "object", "result", "from", "request", "since", "until")(page)
}

// spanOf gives the days between which a list is asked for as the API wants them:
// milliseconds since 1970, where the viewer's days begin and end. A range up to now replaces the first day.
func spanOf(see ui.Viewer, now time.Time, page url.Values) url.Values {
	for name, days := range map[string]int{"since": 0, "until": 1} {
		if at, err := see.ParseDay(page.Get(name)); err == nil {
			page.Set(name, strconv.FormatInt(at.AddDate(0, 0, days).UnixMilli(), 10))
		} else {
			page.Del(name)
		}
	}
	if since, bad := lately(page.Get("period"), now); bad == nil && !since.IsZero() {
		page.Set("since", strconv.FormatInt(since.UnixMilli(), 10))
	}
	return page
}
