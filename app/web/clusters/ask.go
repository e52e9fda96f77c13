package clusters

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// fieldApply has the hash of a preview that was shown and not stored, fieldShown the lines of
	// its changes, to compare them with later ones.
	fieldApply, fieldShown = "apply", "shown"
	// shownLines and shownText bound these lines.
	shownLines, shownText = 60, 300
)

// asks reports whether a change is shown and begun with one press instead of through a form:
// in a dialog, and on a page where its form asks for nothing.
func asks(r *http.Request, kind loom.ChangeKind) bool {
	return page.Wants(r, page.DialogID) || changePages[kind].parts == nil && !kind.Change().Heavy
}

// showAsk shows what a change does, with the button that does it.
func (s *Server) showAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor, v clusters.ClusterView, f changeForm) error {
	if why := v.Allowed[f.verb()]; why != "" {
		return s.confirm(w, r, actor, http.StatusOK, v.Name, v.ID, clusterview.ConfirmModel{Title: changeTitle(v, f), WhyNot: why, Back: route.Cluster(v.ID)})
	}
	in, err := f.input(v)
	var p clusters.PreviewView
	if err == nil {
		p, err = s.Clusters.PreviewUnsaved(r.Context(), actor, in)
	}
	if err != nil {
		return s.refuseAsk(w, r, actor, v, f, err)
	}
	m := s.previewModel(r, p)
	m.Asked, m.Shown = true, effectLines(m.Effects)
	if m.Heavy { // its name is typed on the page of the preview
		m.Hash = ""
	}
	m.Title, m.Apply, m.EditHref = changeTitle(v, f)+"?", changeButton(v, f), ""
	if changePages[f.Kind].parts != nil {
		m.EditHref = route.Query(r.URL.Path, queryPairs(r.URL.Query())...)
	}
	m.Hidden = append(m.Hidden, f.hidden(v)...)
	q := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, value := range q[name] {
			m.Hidden = append(m.Hidden, clusterview.HiddenField{Name: name, Value: value})
		}
	}
	return s.showPreview(w, r, actor, http.StatusOK, m)
}

func queryPairs(q url.Values) []string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, value := range q[name] {
			pairs = append(pairs, name, value)
		}
	}
	return pairs
}

// refuseAsk says why a change cannot begin.
func (s *Server) refuseAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor, v clusters.ClusterView, f changeForm, err error) error {
	e := loom.AsError(err)
	if !refused(err) && e.Kind != loom.Unsolvable || len(e.Missing) > 0 {
		return err
	}
	m := clusterview.ConfirmModel{Title: changeTitle(v, f), WhyNot: e.Message, Back: route.Cluster(v.ID)}
	return s.confirm(w, r, actor, httpx.PageStatus(e.Kind), v.Name, v.ID, m)
}

// applyAsked applies the change that was shown, or shows the change as it is now with the differences.
func (s *Server) applyAsked(w http.ResponseWriter, r *http.Request, actor loom.Actor, v clusters.ClusterView, f changeForm, in clusters.PreviewInput, form url.Values) error {
	in.ProviderFields = givenFields(form)
	_, ref, err := s.Clusters.ApplyUnsaved(r.Context(), actor, in, form.Get(fieldApply))
	if err == nil {
		return s.Return(w, r, route.Cluster(v.ID), begun(in.Kind, v.Name, ref))
	}
	e := loom.AsError(err)
	if e.Preview == "" {
		return s.refuseAsk(w, r, actor, v, f, err)
	}
	p, err := s.Clusters.PreviewByID(r.Context(), actor, e.Preview)
	if err != nil {
		return err
	}
	m := s.previewModel(r, p)
	m.Asked, m.Stale = true, true
	m.Banner = ui.BannerModel{Tone: ui.ToneWarn, Text: e.Message + " This is what it does now."}
	m.Moved = movedLines(shownChanges(form[fieldShown]), shownChanges(effectLines(m.Effects)))
	return s.showPreview(w, r, actor, http.StatusConflict, m)
}

// begun says what began.
func begun(kind loom.ChangeKind, name string, ref loom.OperationRef) httpx.Flash {
	text := "Changing " + name + "."
	switch kind {
	case loom.ChangeCreate:
		text = "Creating " + name + "."
	case loom.ChangeDelete:
		text = "Deleting " + name + "."
	case loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart:
		text = kind.Change().Doing + " of " + name + "."
	case loom.ChangeRetry:
		text = "Retrying " + name + "."
	case loom.ChangeRepair:
		text = "Repairing " + name + "."
	case loom.ChangeSync:
		return httpx.Flash{Tone: "ok", Text: name + " has the newest version of its template."}
	}
	return httpx.Flash{Tone: "ok", Text: text, URL: route.Operation(ref), Link: "View"}
}

// effectLines are what a preview changes, a line each, as a form keeps them.
func effectLines(groups []clusterview.EffectGroup) []string {
	var lines []string
	for _, g := range groups {
		for _, e := range g.Lines {
			where := strings.Trim(e.Detail+" · "+e.Nodes+e.MoreNodes, " ·")
			line := []rune(string(g.Sign) + "\t" + e.Text + "\t" + where)
			lines = append(lines, string(line[:min(len(line), shownText)]))
		}
	}
	return lines[:min(len(lines), shownLines)]
}

// shownChanges reads such lines.
func shownChanges(lines []string) []ui.ChangeModel {
	var changes []ui.ChangeModel
	for _, line := range lines[:min(len(lines), shownLines)] {
		sign, rest, _ := strings.Cut(line, "\t")
		name, where, _ := strings.Cut(rest, "\t")
		changes = append(changes, ui.ChangeModel{Sign: ui.ChangeSign(sign), Name: name, Detail: where})
	}
	return changes
}
