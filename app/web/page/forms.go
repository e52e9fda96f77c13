package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/ui"
)

// ReadForm reads the fields of a form.
func ReadForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	httpx.LimitBody(w, r)
	if err := r.ParseForm(); err != nil {
		return nil, httpx.BodyError(err, "The form could not be read.")
	}
	return r.PostForm, nil
}

// Refused returns what is wrong with a form that was refused, with the status of the
// answer. ok is false for an error that belongs to no form.
func Refused(err error) (fields []loom.FieldError, status int, ok bool) {
	e := loom.AsError(err)
	switch e.Kind {
	case loom.Invalid, loom.Conflict, loom.Throttled, loom.Exhausted:
	default:
		return nil, 0, false
	}
	fields = e.Fields
	if len(fields) == 0 {
		fields = []loom.FieldError{{Message: e.Message}}
	}
	return fields, httpx.PageStatus(e.Kind), true
}

// FormErrors is Refused in the words of the form's page.
func FormErrors(err error, title string) (errs ui.FormErrors, status int, ok bool) {
	fields, status, ok := Refused(err)
	if !ok {
		return errs, 0, false
	}
	return ui.NewFormErrors(title, fields), status, true
}

// Options makes the choices of a select from values and labels in turn.
func Options(chosen string, pairs ...string) []ui.Option {
	var all []ui.Option
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, ui.Option{Value: pairs[i], Label: pairs[i+1], Selected: pairs[i] == chosen})
	}
	return all
}

// ReadIDs reads ids of clusters, each once, as far as most; what is none is left out.
func ReadIDs(texts []string, most int) []loom.ClusterID {
	var ids []loom.ClusterID
	for _, text := range texts {
		if id, ok := loom.ParseClusterID(text); ok && len(ids) < most && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Summaries reads those of the clusters that the actor may see, in one query.
func (s *Shared) Summaries(ctx context.Context, actor loom.Actor, ids []loom.ClusterID) (map[loom.ClusterID]loom.ClusterSummary, error) {
	found := map[loom.ClusterID]loom.ClusterSummary{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: len(ids)}, IDs: ids, Uncounted: true})
	for _, c := range list.Items {
		found[c.ID] = c
	}
	return found, err
}

// longestSearch is how much of a search is read, in bytes.
const longestSearch = 200

// SearchOf gives what is read of the search of a page.
func SearchOf(q url.Values) string {
	text := strings.TrimSpace(q.Get("q"))
	if len(text) > longestSearch {
		text = strings.ToValidUTF8(text[:longestSearch], "")
	}
	return text
}
